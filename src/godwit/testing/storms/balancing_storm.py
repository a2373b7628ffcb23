"""One storm of load balancing: brokers hand subscribers over, and fail while they do.

As `storm`, with clusters whose edge brokers balance their load.  In a random phase of a session, on
either side, the offloader, the acceptor or a head crashes and restarts, or a link between them
breaks.  The guarantee is that of `storm`; besides, no broker is BUSY in the end, and each session
expects a smaller difference at its end than at its beginning (L39).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random

from msgspec.structs import replace

from godwit.broker.effects import Decision
from godwit.broker.routing import Tables
from godwit.broker.stimuli import Module, Neighbour, OperatorCommand
from godwit.overlay.topology import Topology, peer
from godwit.policies import offload
from godwit.policies.offload.offload_module import Offload
from godwit.policies.offload.peer import edges_of
from godwit.policies.offload.settings import BalancingSettings
from godwit.runtime.settings import Limits
from godwit.testing.memory_network import MemoryNetwork
from godwit.testing.storms.fault_injection import FaultInjector
from godwit.testing.storms.storm import (
    Storm,
    becomes_true,
    check_deliveries,
    count_deliveries,
)
from godwit.testing.storms.storm_checks import stale_ports
from godwit.testing.storms.storm_clients import StormClient
from godwit.testing.table_checks import table_errors
from godwit.testing.virtual_time import run_in_virtual_time

PUBLISH_S = 60.0
#: About what a publication has on a link, with its frame.
MESSAGE_BYTES = 100
PHASES = ("requesting", "sampling", "migrating", "accepted", "receiving")
#: How often the phase is polled, and how long after it has begun the fault happens at most.
POLL_S = 0.005
LATE_S = 0.5
LIMITS = Limits(load_window_s=1.0)


def balancing_storm(seed: int) -> Storm:
    """The storm of this seed, always the same; `wrong` is empty unless a guarantee was broken."""
    return run_in_virtual_time(_storm(Storm(seed), Random(seed)), seed=seed, clocks=True)


def storm_settings(random: Random) -> BalancingSettings:
    """Very short periods: a session a few seconds after the subscribers are there."""
    return BalancingSettings(
        pie=random.choice(("plain", "adaptive")),
        hold_s=1.0,
        moves_per_s=random.choice((3.0, 100.0)),
        local_pie_period_s=1.0,
        global_pie_period_s=2.0,
        local_detection_min_s=2.0,
        local_detection_max_s=4.0,
        global_detection_min_s=3.0,
        global_detection_max_s=5.0,
        stabilize_s=3.0,
        press_samples=10,
        press_timeout_s=2.0,
        reply_timeout_s=random.choice((0.2, 2.0)),
        session_margin_s=random.choice((1.0, 5.0)),
        migration_timeout_s=random.choice((0.2, 2.0)),
    )


async def _storm(result: Storm, random: Random) -> Storm:
    clusters = random.choice((1, 1, 2))
    topology = peer(clusters=clusters, edges=random.randint(2, 3))
    result.brokers = len(topology.brokers)
    heads = [name for name in topology.brokers if len(topology.neighbours(name)) > 1]
    edges = [edge for head in heads for edge in edges_of(topology, head)]
    subscribers, per_s = random.randint(4, 10), 10.0
    # Each subscriber draws about half of what the two publishers publish.
    output_bytes_s = subscribers * per_s * 0.5 * MESSAGE_BYTES
    bandwidths = {edge: output_bytes_s * 10 ** random.uniform(-0.2, 0.4) for edge in edges}
    network = MemoryNetwork(
        topology,
        limits=LIMITS,
        modules=offload.modules(storm_settings(random), seed=result.seed),
        latency_s=lambda: random.uniform(0.0, 0.002),
        bandwidths_bytes_s=bandwidths,
    )
    async with network:
        await asyncio.sleep(1.0)  # Until the brokers have found their roles.
        names = [f"p{number}" for number in range(2)]
        clients = [_publisher(name, network, random.choice(heads), random) for name in names]
        crowded = random.choice(edges)
        for number in range(subscribers):
            at = crowded if random.random() < 0.8 else random.choice(edges)
            subscriber = StormClient(f"s{number}", network, at, random)
            subscriber.publishes = False
            clients.append(subscriber)
        for client in clients:
            client.period_s = 2 / per_s
            await client.start(names)
        faults = FaultInjector(network, random)
        until_s = asyncio.get_running_loop().time() + PUBLISH_S
        async with asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(client.publish_until(until_s))
            for _ in range(random.randint(1, 2)):
                group.create_task(_fault(network, topology, faults, random, until_s))
        await faults.all_restarted()
        result.happened = faults.happened
        await _check(result, network, clients)
        count_deliveries(result, clients)
        for client in clients:
            await client.stop()
    return result


def _publisher(name: str, network: MemoryNetwork, at: str, random: Random) -> StormClient:
    publisher = StormClient(name, network, at, random)
    publisher.publishes, publisher.subscribes = True, False
    return publisher


def _modules(network: MemoryNetwork) -> Iterator[tuple[str, Offload]]:
    for name, node in network.nodes.items():
        module = node.broker.modules["offload"]
        assert isinstance(module, Offload)
        yield name, module


async def _fault(
    network: MemoryNetwork,
    topology: Topology,
    faults: FaultInjector,
    random: Random,
    until_s: float,
) -> None:
    """Wait for a phase of a session, and let something fail."""
    loop = asyncio.get_running_loop()
    await asyncio.sleep(random.uniform(0.0, PUBLISH_S / 3))
    phase, who = random.choice(PHASES), random.choice(("own", "partner", "head", "link"))
    while loop.time() < until_s:
        for name, module in _modules(network):
            session = module.session
            if session is None or session[1] != phase:
                continue
            await asyncio.sleep(random.choice((0.0, random.uniform(0.0, LATE_S))))
            partner = session[0]
            faults.happened.append(f"{name} with {partner} was {phase}: {who} fails")
            match who:
                case "own":
                    faults.crash(name)
                case "partner":
                    faults.crash(partner)
                case "head":
                    faults.crash(topology.neighbours(name)[0])
                case _:
                    network.cut(name, Neighbour(topology.neighbours(name)[0]))
            return
        await asyncio.sleep(POLL_S)


async def _check(result: Storm, network: MemoryNetwork, clients: list[StormClient]) -> None:
    """Wait until all is acknowledged and every table is right; record what is wrong then."""
    sessions = [client.client.session for client in clients]
    for node in network.nodes.values():
        node.stimulate(OperatorCommand(Offload.name, "pause"))

    def errors() -> list[str]:
        waiting = [f"{s.name} waits" for s in sessions if not s.is_idle or s.is_moving]
        return waiting or _table_errors(network, clients) or _status_errors(network)

    if await becomes_true(lambda: not errors()):
        await asyncio.sleep(1.0)
    else:
        result.wrong += errors()
    check_deliveries(result, clients)
    for name, module in _modules(network):
        for decision in module.decisions:
            result.decided[decision.action] += 1
            if not _improves(decision):
                result.wrong.append(f"L39 at {name}: {decision}")


def _improves(decision: Decision) -> bool:
    before, after = (decision.reason.get(f"difference_{when}") for when in ("before", "after"))
    if not isinstance(before, float) or not isinstance(after, float):
        return True
    return not decision.reason["planned"] or abs(after) < abs(before)


def _status_errors(network: MemoryNetwork) -> list[str]:
    return [
        f"{name} is {module.account(0.0)['status']}, in {module.session}"
        for name, module in _modules(network)
        if module.session is not None or module.account(0.0).get("status") == "BUSY"
    ]


def _table_errors(network: MemoryNetwork, clients: list[StormClient]) -> list[str]:
    """Wrong entries of clients, and entries of modules that these do not hold."""
    sessions = [client.client.session for client in clients]
    tables = network.tables()
    of_clients = {name: _without_modules(found) for name, found in tables.items()}
    wrong = table_errors(network.topology, of_clients, sessions) or stale_ports(network, sessions)
    advertised: set[str] = set()
    subscribed: set[str] = set()
    for node in network.nodes.values():
        node.broker.routing.check()
        held = node.broker.sessions.of(Module("offload"))
        advertised |= set(held.advertisements)
        subscribed |= set(held.subscriptions)
    for name, found in tables.items():
        advertisements = {id for id in found.advertisements if _is_of_module(id)}
        if advertisements != advertised:
            different = sorted(advertisements ^ advertised)
            wrong.append(f"{name}: module advertisements that differ: {different[:5]}")
        stale = {id for id in found.subscriptions if _is_of_module(id)} - subscribed
        if stale:
            wrong.append(f"{name}: module subscriptions that no module holds: {sorted(stale)[:5]}")
    return wrong


def _without_modules(tables: Tables) -> Tables:
    return replace(
        tables,
        advertisements={
            id: hop for id, hop in tables.advertisements.items() if not _is_of_module(id)
        },
        subscriptions={
            id: hop for id, hop in tables.subscriptions.items() if not _is_of_module(id)
        },
        told={
            name: [id for id in told if not _is_of_module(id)] for name, told in tables.told.items()
        },
    )


def _is_of_module(id: str) -> bool:
    return id.startswith("$")
