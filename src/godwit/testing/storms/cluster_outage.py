"""An outage in clusters for longer than neighbours wait: brokers are given up, and come back.

What is published meanwhile may be lost, and clients are told of the gap.  Afterwards everything is
as before: no gap is open, every broker has the subscriptions of its cluster, publications reach all
again, although other brokers have taken places in rings, and clients can move.
"""

from __future__ import annotations

import asyncio
from random import Random

from godwit.overlay.clusters.cluster_structure import ClusterStructure, arrange
from godwit.overlay.topology import chain
from godwit.testing.memory_network import MemoryNetwork
from godwit.testing.storms.cluster_storm import cluster_errors
from godwit.testing.storms.storm import (
    Storm,
    becomes_true,
    count_deliveries,
    move_without_faults,
)
from godwit.testing.storms.storm_checks import delivery_errors
from godwit.testing.storms.storm_clients import StormClient
from godwit.testing.virtual_time import run_in_virtual_time

#: Neighbours wait for ten seconds: some brokers are back before.
DOWN_S = (5.0, 12.0, 25.0, 25.0)
PUBLISH_S = 2.0


def cluster_outage(seed: int) -> Storm:
    """The outage of this seed, always the same; `wrong` is empty unless something stayed broken."""
    return run_in_virtual_time(_outage(Storm(seed), Random(f"outage {seed}")), seed=seed)


async def _outage(result: Storm, random: Random) -> Storm:
    names = chain(random.randint(3, 9))
    structure = arrange(names.brokers, random.randint(1, len(names.brokers)))
    result.brokers = len(structure.brokers)
    async with MemoryNetwork(
        names,
        clusters=len(structure.clusters),
        latency_s=lambda: random.uniform(0.0, 0.002),
    ) as network:
        people = [f"c{number}" for number in range(4)]
        clients = [
            StormClient(name, network, random.choice(structure.brokers), random) for name in people
        ]
        for client in clients:
            await client.start(people)
        until_s = asyncio.get_running_loop().time() + PUBLISH_S
        async with asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(client.publish_until(until_s))
            failing = random.sample(structure.brokers, random.randint(1, result.brokers // 2))
            for broker in failing:
                down_s = random.choice(DOWN_S)
                result.happened.append(f"{broker} is down for {down_s:g} s")
                group.create_task(_fail(network, broker, random.uniform(0.0, 3.0), down_s))
        await becomes_true(lambda: not _errors(network, structure, clients))
        result.wrong += _errors(network, structure, clients)
        await _publish_again(result, clients)
        await move_without_faults(result, network.topology, clients, random)
        count_deliveries(result, clients)
        for client in clients:
            await client.stop()
    return result


async def _fail(network: MemoryNetwork, broker: str, at_s: float, down_s: float) -> None:
    await asyncio.sleep(at_s)
    network.crash(broker)
    await asyncio.sleep(down_s)
    await network.restart(broker)


def _errors(
    network: MemoryNetwork, structure: ClusterStructure, clients: list[StormClient]
) -> list[str]:
    """What is still wrong; brokers may have more links than before."""
    sessions = [client.client.session for client in clients]
    wrong = [f"{session.name} waits" for session in sessions if not session.is_idle]
    wrong += [f"{each.name} has a gap" for each in clients if each.client.gaps.open]
    for name, node in network.nodes.items():
        if not node.links.status().is_complete:
            wrong.append(f"{name} lacks a part of the network")
    return wrong or cluster_errors(network, structure, sessions, may_have_more_links=True)


async def _publish_again(result: Storm, clients: list[StormClient]) -> None:
    """Record what does not arrive of what is published from now on."""
    first = {client.name: len(client.published) for client in clients}
    for client in clients:
        await client.publish_until(asyncio.get_running_loop().time() + 0.3)
    await asyncio.sleep(5.0)
    for subscriber in clients:
        for publisher in clients:
            since = first[publisher.name]
            published = [n for n in publisher.published_for(subscriber) if n >= since]
            received = [n for n in subscriber.received.get(publisher.name, []) if n >= since]
            found = delivery_errors(received, published)
            result.wrong += [f"{subscriber.name} from {publisher.name}: {each}" for each in found]
