"""One storm: a random tree of brokers, clients that move in it, and faults during their moves.

The guarantee, whose conditions are in `docs/applications.md`: whatever fails, each publication
reaches all matching subscribers once, in publisher order; of a client that dies, each publication
that was acknowledged.  Every move ends at one of its two brokers, and when the network is quiet,
the tables of all brokers are those of a network without failures.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from godwit.broker.modules import PolicyModule
from godwit.migration.move import Phase
from godwit.overlay.mesh.mesh_routing import MeshRouting
from godwit.overlay.mesh.mesh_settings import mesh_settings_of
from godwit.overlay.topology import Topology, random_tree
from godwit.runtime.settings import Limits
from godwit.testing.memory_network import MemoryNetwork
from godwit.testing.overlay_shapes import shape_for
from godwit.testing.random_soft_links import RandomSoftLinks
from godwit.testing.storms.fault_injection import FaultInjector, StormFault
from godwit.testing.storms.storm_checks import delivery_errors, network_errors
from godwit.testing.storms.storm_clients import StormClient
from godwit.testing.virtual_time import run_in_virtual_time

PUBLISH_S = 1.0
#: Until every timeout has expired; much longer than any limit of a broker.
QUIET_S = 300.0
PHASES = (Phase.SUBSCRIBING, Phase.SWEEPING, Phase.PAUSING, Phase.TURNING, None)


@dataclass
class Storm:
    seed: int
    brokers: int = 0
    publications: int = 0
    deliveries: int = 0
    moved: int = 0
    stayed: int = 0
    decided: Counter[str] = field(default_factory=Counter)
    """Decisions of policies, by action."""

    happened: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def is_flawless(self) -> bool:
        return not self.wrong

    def __str__(self) -> str:
        counts = (
            f"storm {self.seed}: {self.brokers} brokers, {self.publications} publications,"
            f" {self.deliveries} deliveries, {self.moved} moves, {self.stayed} that failed"
        )
        return "\n".join([counts, *self.happened, *(f"WRONG: {each}" for each in self.wrong)])


def storm(seed: int, *, limits: Limits | None = None, has_soft_links: bool = False) -> Storm:
    """The storm of this seed, always the same; `wrong` is empty unless a guarantee was broken.

    With `has_soft_links` the tree is a mesh, whose soft links open and close at random.
    """
    storm = _storm(Storm(seed), Random(seed), limits, has_soft_links=has_soft_links)
    return run_in_virtual_time(storm, seed=seed)


async def _storm(
    result: Storm, random: Random, limits: Limits | None, *, has_soft_links: bool
) -> Storm:
    topology = random_tree(random.randint(2, 7), random)
    result.brokers = len(topology.brokers)
    latency_s = random.choice((0.0001, 0.002))
    mesh, seed = None, result.seed
    if has_soft_links:
        mesh = mesh_settings_of(shape_for(MeshRouting, topology, seed=seed).settings)
    async with MemoryNetwork(
        topology,
        mesh=mesh,
        modules=lambda broker: _soft_links(broker, seed) if has_soft_links else (),
        limits=limits,
        latency_s=lambda: random.uniform(0.0, latency_s),
    ) as network:
        names = [f"c{number}" for number in range(random.randint(2, 5))]
        clients = [
            StormClient(name, network, random.choice(topology.brokers), random) for name in names
        ]
        faults = FaultInjector(network, random)
        for client in clients:
            await client.start(names)
        until_s = asyncio.get_running_loop().time() + PUBLISH_S
        async with asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(client.publish_until(until_s))
            group.create_task(move_with_faults(clients, topology, faults, random))
        await faults.all_restarted()
        result.happened = faults.happened
        await _check_when_quiet(result, network, clients)
        if result.is_flawless:
            await move_without_faults(result, topology, clients, random)
            await _check_when_quiet(result, network, clients)
        count_deliveries(result, clients)
        for client in clients:
            await client.stop()
    return result


def _soft_links(broker: str, seed: int) -> list[PolicyModule]:
    return [RandomSoftLinks(Random(f"{seed} {broker}"), every_s=0.1, for_s=3 * PUBLISH_S)]


async def move_with_faults(
    clients: list[StormClient], topology: Topology, faults: FaultInjector, random: Random
) -> None:
    """A few moves, some at the same time; at least one of them meets a fault."""
    moves = random.randint(2, 4)
    has_fault = False
    async with asyncio.TaskGroup() as group:
        while moves and not all(client.is_dead for client in clients):
            await asyncio.sleep(random.uniform(0.0, PUBLISH_S / 3))
            can_move = [c for c in clients if not c.is_dead and c.client.move_phase is None]
            if not can_move:
                continue
            moves -= 1
            client = random.choice(can_move)
            source = client.client.session.broker
            target = random.choice([b for b in topology.brokers if b != source])
            move = group.create_task(client.move(target))
            if random.random() < 0.3 or (moves == 0 and not has_fault):
                has_fault = True
                fault, phase = random.choice(list(StormFault)), random.choice(PHASES)
                injection = faults.inject_during(move, phase, fault, client, source, target)
                group.create_task(injection)


async def move_without_faults(
    result: Storm, topology: Topology, clients: list[StormClient], random: Random
) -> None:
    """Every client publishes, moves and publishes again; now nothing fails."""
    for client in clients:
        if client.is_dead:
            continue
        source, stayed = client.client.session.broker, client.stayed
        await client.publish_until(asyncio.get_running_loop().time() + 0.1)
        await client.move(random.choice([b for b in topology.brokers if b != source]), within_s=5.0)
        await client.publish_until(asyncio.get_running_loop().time() + 0.1)
        if client.stayed > stayed:
            result.wrong.append(f"{client.name} cannot leave {source} although nothing fails")


async def _check_when_quiet(
    result: Storm, network: MemoryNetwork, clients: list[StormClient]
) -> None:
    """Wait until all is acknowledged and every table is right; record what is wrong then."""
    sessions = [client.client.session for client in clients if not client.is_dead]

    def errors() -> list[str]:
        busy = [f"{s.name} waits" for s in sessions if not s.is_idle or s.is_moving]
        return busy or network_errors(network, sessions)

    if await becomes_true(lambda: not errors()):
        # What was acknowledged has been received, but perhaps not read.
        await asyncio.sleep(1.0)
    else:
        result.wrong += errors()
    check_deliveries(result, clients)


def check_deliveries(result: Storm, clients: list[StormClient]) -> None:
    """Record what is wrong with what each client that is alive received from each other."""
    for subscriber in clients:
        if subscriber.is_dead:
            continue
        for publisher in clients:
            published = publisher.published_for(subscriber)
            may_miss = 0
            if publisher.is_dead:
                first = len(publisher.published) - publisher.unacknowledged_at_death
                may_miss = sum(1 for number in published if number >= first)
            received = subscriber.received.get(publisher.name, [])
            found = delivery_errors(received, published, may_miss=may_miss)
            result.wrong += [f"{subscriber.name} from {publisher.name}: {each}" for each in found]


async def becomes_true(condition: Callable[[], bool]) -> bool:
    loop = asyncio.get_running_loop()
    end_s = loop.time() + QUIET_S
    while not condition():
        if loop.time() > end_s:
            return False
        await asyncio.sleep(0.5)
    return True


def count_deliveries(result: Storm, clients: list[StormClient]) -> None:
    result.publications = sum(len(client.published) for client in clients)
    result.deliveries = sum(len(each) for client in clients for each in client.received.values())
    result.moved = sum(client.moved for client in clients)
    result.stayed = sum(client.stayed for client in clients)
