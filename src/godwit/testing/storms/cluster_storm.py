"""One storm in clusters: clients that publish, subscribe and move while brokers and links fail.

The guarantee is that of `storm`: each publication reaches all matching subscribers once, in
publisher order, and when the network is quiet, every broker has the subscriptions of its cluster
and no others.  In every other storm clients move.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from random import Random

from godwit.broker.stimuli import Hop, LocalClient, Neighbour
from godwit.client.client_session import ClientSession
from godwit.overlay.clusters.cluster_structure import ClusterStructure, arrange
from godwit.overlay.topology import chain
from godwit.testing.memory_network import MemoryNetwork
from godwit.testing.storms.fault_injection import FaultInjector
from godwit.testing.storms.storm import (
    PUBLISH_S,
    Storm,
    becomes_true,
    check_deliveries,
    count_deliveries,
    move_with_faults,
    move_without_faults,
)
from godwit.testing.storms.storm_checks import stale_ports
from godwit.testing.storms.storm_clients import StormClient
from godwit.testing.virtual_time import run_in_virtual_time


def cluster_storm(seed: int) -> Storm:
    """The storm of this seed, always the same; `wrong` is empty unless a guarantee was broken."""
    return run_in_virtual_time(_storm(Storm(seed), Random(f"clusters {seed}")), seed=seed)


async def _storm(result: Storm, random: Random) -> Storm:
    with_moves = result.seed % 2 == 1
    names = chain(random.randint(2, 9))
    structure = arrange(names.brokers, random.randint(1, len(names.brokers)))
    result.brokers = len(structure.brokers)
    latency_s = random.choice((0.0001, 0.002))
    async with MemoryNetwork(
        names,
        clusters=len(structure.clusters),
        latency_s=lambda: random.uniform(0.0, latency_s),
    ) as network:
        people = [f"c{number}" for number in range(random.randint(2, 6))]
        clients = [
            StormClient(name, network, random.choice(structure.brokers), random) for name in people
        ]
        faults = FaultInjector(network, random)
        for client in clients:
            await client.start(people)
        until_s = asyncio.get_running_loop().time() + PUBLISH_S
        async with asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(client.publish_until(until_s))
            if with_moves:
                group.create_task(move_with_faults(clients, network.topology, faults, random))
            else:
                group.create_task(_fail(network, structure, faults, random))
        await faults.all_restarted()
        result.happened = [f"{len(structure.clusters)} clusters", *faults.happened]
        await _check_when_quiet(result, network, structure, clients)
        if with_moves and result.is_flawless:
            await move_without_faults(result, network.topology, clients, random)
            await _check_when_quiet(result, network, structure, clients)
        count_deliveries(result, clients)
        for client in clients:
            await client.stop()
    return result


async def _fail(
    network: MemoryNetwork, structure: ClusterStructure, faults: FaultInjector, random: Random
) -> None:
    """One to four faults, some at the same time."""
    for _ in range(random.randint(1, 4)):
        await asyncio.sleep(random.choice((0.0, random.uniform(0.0, PUBLISH_S / 2))))
        links = sorted(structure.topology.links)
        if random.random() < 0.5 or not links:
            faults.crash(random.choice(structure.brokers))
        else:
            a, b = random.choice(links)
            faults.happened.append(f"the connection between {a} and {b} breaks")
            network.cut(a, Neighbour(b))


async def _check_when_quiet(
    result: Storm, network: MemoryNetwork, structure: ClusterStructure, clients: list[StormClient]
) -> None:
    sessions = [client.client.session for client in clients if not client.is_dead]

    def errors() -> list[str]:
        busy = [f"{s.name} waits" for s in sessions if not s.is_idle or s.is_moving]
        wrong = busy or cluster_errors(network, structure, sessions)
        return wrong or stale_ports(network, sessions)

    if await becomes_true(lambda: not errors()):
        # What was acknowledged has been received, but perhaps not read.
        await asyncio.sleep(1.0)
    else:
        result.wrong += errors()
    check_deliveries(result, clients)


def cluster_errors(
    network: MemoryNetwork,
    structure: ClusterStructure,
    sessions: Iterable[ClientSession],
    *,
    may_have_more_links: bool = False,
) -> list[str]:
    """What is wrong in the lists of all brokers, in words; none if all are right."""
    subscribed: dict[str, dict[str, Hop]] = {broker: {} for broker in structure.brokers}
    advertised: dict[str, dict[str, Hop]] = {broker: {} for broker in structure.brokers}
    for session in sessions:
        home = LocalClient(session.name)
        subscribed[session.broker] |= {s.id: home for s in session.subscriptions.values()}
        advertised[session.broker] |= dict.fromkeys(map(str, session.advertisements), home)
    tables = network.tables()
    wrong: list[str] = []
    for broker, found in tables.items():
        network.nodes[broker].broker.routing.check()
        expected = dict(subscribed[broker])
        for mate in structure.mates(broker):
            sent = tables[mate].told.get(broker, [])
            expected |= dict.fromkeys(sent, Neighbour(mate))
            unknown = set(sent) - set(subscribed[mate])
            wrong += [f"{mate} has sent {id}, which none of its clients holds" for id in unknown]
        if found.subscriptions != expected:
            wrong.append(f"{broker} has subscriptions {found.subscriptions}, not {expected}")
        if found.advertisements != advertised[broker]:
            wrong.append(f"{broker} has advertisements {found.advertisements}")
        links, expected_links = set(found.told), set(structure.links(broker))
        if links != expected_links and not (may_have_more_links and links > expected_links):
            wrong.append(f"{broker} is linked with {sorted(found.told)}")
    return wrong
