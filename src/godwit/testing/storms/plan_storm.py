"""One storm of plans: the coordinator carries plans out, and brokers crash meanwhile.

A random tree of live brokers in virtual time, with the production coordinator.  It carries out a
plan that needs few of the brokers, and then one that needs others, under traffic: brokers start,
the tree changes, clients move, brokers that are not needed leave.  During each plan a broker
crashes, a link breaks, or the coordinator crashes; brokers are started again with the links of
their file, the coordinator with its record.  The guarantee is that of `storm`, and each plan is
carried out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from random import Random

from godwit.api.network_api import ChangeKind, ChangeRequest, ChangeState, NetworkChange, StepState
from godwit.coordinator.stragglers import last_shape
from godwit.errors import GodwitError
from godwit.overlay.topology import Topology, random_tree, topology
from godwit.runtime.settings import Limits
from godwit.testing.memory_coordinator import MemoryCoordinator
from godwit.testing.memory_network import MemoryNetwork
from godwit.testing.storms.fault_injection import FaultInjector
from godwit.testing.storms.storm import Storm, becomes_true, check_deliveries, count_deliveries
from godwit.testing.storms.storm_checks import stale_ports
from godwit.testing.storms.storm_clients import StormClient
from godwit.testing.table_checks import table_errors
from godwit.testing.virtual_time import run_in_virtual_time

PLANS = 2
#: When the fault happens, after the plan has begun.
FAULT_S = 4.0
AGAIN_S = 1.0
#: A plan that is refused for so long is never possible.
REFUSED_S = 70.0
#: A plan takes less, whatever fails.
ENDED_S = 200.0
#: `restart_s` is longer than clients wait between two calls: one that is later may miss something.
LIMITS = (Limits(), Limits(link_s=60.0, restart_s=5.0), Limits(link_s=20.0))


def plan_storm(seed: int) -> Storm:
    """The storm of this seed, always the same; `wrong` is empty unless a guarantee was broken."""
    random = Random(f"plan storm {seed}")
    tree = random_tree(random.randint(3, 7), random)
    storm = storm_of_plans(Storm(seed), random, tree, StormyPlans, LIMITS)
    return run_in_virtual_time(storm, seed=seed, clocks=True)


async def storm_of_plans(
    result: Storm,
    random: Random,
    tree: Topology,
    make: type[StormyPlans],
    limits: Sequence[Limits],
) -> Storm:
    result.brokers = len(tree.brokers)
    latency_s = random.choice((0.0001, 0.002, 0.02))
    async with (
        MemoryNetwork(
            tree,
            limits=random.choice(limits),
            latency_s=lambda: random.uniform(0.0, latency_s),
        ) as network,
        MemoryCoordinator(network, random=random) as coordinator,
    ):
        names = [f"c{number}" for number in range(random.randint(2, 6))]
        clients = [
            StormClient(name, network, random.choice(tree.brokers), random) for name in names
        ]
        for client in clients:
            client.period_s = 10 ** random.uniform(-2.0, -1.0)
            await client.start(names)
        plans = make(result, network, coordinator, random, tree.brokers, names)
        planning = asyncio.create_task(plans.run())
        publishing = [asyncio.create_task(_publish(client, planning)) for client in clients]
        await planning
        await asyncio.gather(*publishing)
        await plans.faults.all_restarted()
        result.happened += plans.faults.happened
        await _check_when_quiet(result, network, coordinator, clients)
        count_deliveries(result, clients)
        for client in clients:
            if result.wrong:
                client.kill()  # It might wait for an acknowledgement for ever.
            await client.stop()
    return result


async def _publish(client: StormClient, planning: asyncio.Task[None]) -> None:
    loop = asyncio.get_running_loop()
    while not planning.done() and client.publishes:
        await client.publish_until(loop.time() + 0.5)


class StormyPlans:
    """Plans, one after the other, each with a fault."""

    def __init__(
        self,
        result: Storm,
        network: MemoryNetwork,
        coordinator: MemoryCoordinator,
        random: Random,
        brokers: tuple[str, ...],
        clients: list[str],
    ) -> None:
        self.faults = FaultInjector(network, random)
        self.result = result
        self.network = network
        self.coordinator = coordinator
        self.random = random
        self._brokers = brokers
        self._clients = clients

    async def run(self) -> None:
        for _ in range(PLANS):
            await asyncio.sleep(self.random.uniform(1.5, 3.0))
            fault = asyncio.create_task(self.fail())
            change = await self._carry_out(self._plan(self.needs()))
            await fault
            if change is not None:
                said = f"{change.state.value} {change.because}"
                self.faults.happened.append(said)
                if change.state is not ChangeState.DONE:
                    self.result.wrong.append(f"a plan was not carried out: {said}")

    def needs(self) -> int:
        """How many brokers the next plan has."""
        return self.random.randint(1, len(self._brokers))

    def _plan(self, count: int) -> ChangeRequest:
        random = self.random
        needed = random.sample(self._brokers, count)
        tree = topology(needed, _renamed(random_tree(len(needed), random).links, needed))
        clients = [name for name in self._clients if random.random() < 0.9]
        return ChangeRequest(
            kind=ChangeKind.ALLOCATE,
            brokers=needed,
            link=random.choice(needed),
            links=sorted(tree.links),
            clients={name: random.choice(needed) for name in clients},
            keeps=random.random() < 0.2,
            per_s=random.choice((2.0, 50.0)),
        )

    async def _carry_out(self, request: ChangeRequest) -> NetworkChange | None:
        """None if it is refused all the time."""
        loop = asyncio.get_running_loop()
        began_s, refusal = loop.time(), ""
        while loop.time() < began_s + REFUSED_S:
            try:
                change = await self.coordinator.begin(request)
            except GodwitError as error:
                refusal = str(error)
                await asyncio.sleep(AGAIN_S)
            else:
                self.faults.happened.append(f"{loop.time():.1f} s: to {', '.join(request.brokers)}")
                return await self._ended(change.number)
        self.result.wrong.append(f"refused: {refusal}")
        return None

    async def _ended(self, number: int) -> NetworkChange | None:
        try:
            async with asyncio.timeout(ENDED_S):
                return await self.coordinator.ended(number)
        except TimeoutError:
            steps = self.coordinator.core.changes.change(number).steps
            (step,) = [each for each in steps if each.state is StepState.RUNNING]
            self.result.wrong.append(f"has not ended: {step.kind.value} {step.broker}")
            return None

    async def fail(self) -> None:
        await asyncio.sleep(self.random.uniform(0.0, self.random.choice((0.5, FAULT_S))))
        at_s = asyncio.get_running_loop().time()
        self.faults.happened.append(f"{at_s:.1f} s:")
        match self.random.choice(("broker", "broker", "link", "coordinator", "nothing")):
            case "broker":
                self._crash()
            case "link":
                self._cut()
            case "coordinator":
                self.faults.happened.append("the coordinator crashes")
                await self.coordinator.crash()
                await asyncio.sleep(self.random.choice((0.0, 0.3, 3.0)))
                self.coordinator.start()

    def _crash(self) -> None:
        self.faults.crash(self.random.choice(sorted(self.network.nodes)))

    def _cut(self) -> None:
        broker = self.random.choice(sorted(self.network.nodes))
        links = [hop for hop in self.network.nodes[broker].ports if hop.kind == "neighbour"]
        if links:
            self.network.cut(broker, self.random.choice(links))
            self.faults.happened.append(f"a link of {broker} breaks")


def _renamed(links: frozenset[tuple[str, str]], names: list[str]) -> list[tuple[str, str]]:
    """The links of a tree of B1, B2 ... with these names instead."""
    named = {f"B{number}": name for number, name in enumerate(names, 1)}
    return [(named[a], named[b]) for a, b in sorted(links)]


async def _check_when_quiet(
    result: Storm,
    network: MemoryNetwork,
    coordinator: MemoryCoordinator,
    clients: list[StormClient],
) -> None:
    if await becomes_true(lambda: not _errors(network, coordinator, clients)):
        await asyncio.sleep(1.0)  # What was acknowledged has been received, but perhaps not read.
    else:
        result.wrong += _errors(network, coordinator, clients)
    check_deliveries(result, clients)


def _errors(
    network: MemoryNetwork, coordinator: MemoryCoordinator, clients: list[StormClient]
) -> list[str]:
    sessions = [client.client.session for client in clients]
    busy = [f"{s.name} waits" for s in sessions if not s.is_idle or s.is_moving]
    core = coordinator.core
    record = last_shape(core.changes.latest(100), core.registry.brokers)
    lane, tree = 0, network.topology
    if record is not None:
        members = sorted({*record.shape.brokers, *record.shape.addresses})
        lane, tree = record.shape.epoch, topology(members, record.shape.links)
    for name, node in network.nodes.items():
        if node.epochs.status.epoch != lane or node.epochs.status.phase != "steady":
            busy.append(f"{name} is {node.epochs.status}, not at epoch {lane}")
        if node.hold is not None or node.is_recovering:
            busy.append(f"{name} still holds publications")
        node.broker.routing.check()
    # One that was killed while it left is started again, and is outside.
    inside = {name for name, node in network.nodes.items() if not node.epochs.is_outside}
    if inside != set(tree.brokers):
        return [*busy, f"{sorted(inside)} are there, not {sorted(tree.brokers)}"]
    found = {name: table for name, table in network.tables().items() if name in inside}
    tables = partial(table_errors, tree, found, sessions, lane)
    return busy or tables() or stale_ports(network, sessions)
