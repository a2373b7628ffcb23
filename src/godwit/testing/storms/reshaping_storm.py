"""One storm of a network that changes its shape: brokers, links and the coordinator fail meanwhile.

A random tree of live brokers in virtual time changes to other random trees while clients publish
and move.  In a random phase of each change a broker crashes and is started again, with the
configuration of the first tree; or a link breaks, or the coordinator crashes and goes on later.
The guarantee is that of `storm`; besides, a change that was not committed leaves the old shape, and
one that was committed ends in the new one, at every broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from godwit.client.client_session import ClientSession
from godwit.migration.reshaping import ReshapingRecord, ReshapingStage
from godwit.overlay.epochs.epoch_phases import EpochPhase
from godwit.overlay.topology import random_tree
from godwit.runtime.reshaping_run import carry_out
from godwit.testing.memory_network import MemoryNetwork
from godwit.testing.random_reshaping import shuffled_tree
from godwit.testing.storms.fault_injection import FaultInjector
from godwit.testing.storms.storm import Storm, becomes_true, check_deliveries, count_deliveries
from godwit.testing.storms.storm_checks import stale_ports
from godwit.testing.storms.storm_clients import StormClient, some_clients
from godwit.testing.table_checks import table_errors
from godwit.testing.virtual_time import run_in_virtual_time

#: When something fails: in this phase of some broker, or at this stage of the record.
MOMENTS = ("building", "built", "committed", "holding", "done")
#: How often the phase is polled, and how long after it has begun the fault happens at most.
POLL_S = 0.0002
LATE_S = (0.0, 0.002, 0.05, 0.5)
PUBLISH_S = 6.0


def reshaping_storm(seed: int) -> Storm:
    """The storm of this seed, always the same; `wrong` is empty unless a guarantee was broken."""
    return run_in_virtual_time(_storm(Storm(seed), Random(f"reshaping storm {seed}")), seed=seed)


async def _storm(result: Storm, random: Random) -> Storm:
    topology = random_tree(random.randint(2, 6), random)
    result.brokers = len(topology.brokers)
    latency_s = random.choice((0.0001, 0.002, 0.02))
    async with MemoryNetwork(topology, latency_s=lambda: random.uniform(0.0, latency_s)) as network:
        clients = await some_clients(network, topology.brokers, random)
        changes = StormyChanges(result, network, random)
        until_s = asyncio.get_running_loop().time() + PUBLISH_S
        async with asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(client.publish_until(until_s))
            group.create_task(some_moves(clients, network, random))
            group.create_task(changes.run())
        await changes.faults.all_restarted()
        result.happened += changes.faults.happened
        await _check_when_quiet(result, network, clients)
        count_deliveries(result, clients)
        for client in clients:
            await client.stop()
    return result


async def some_moves(clients: list[StormClient], network: MemoryNetwork, random: Random) -> None:
    """Some clients move; it may be refused."""
    for _ in range(random.randint(0, 3)):
        await asyncio.sleep(random.uniform(0.0, PUBLISH_S / 4))
        client = random.choice(clients)
        source = client.client.session.broker
        others = [broker for broker in network.topology.brokers if broker != source]
        if client.client.move_phase is None:
            await client.move(random.choice(others))


class StormyChanges:
    """Changes of the shape, one after the other, each with a fault, unless they are calm."""

    is_calm = False

    def __init__(self, result: Storm, network: MemoryNetwork, random: Random) -> None:
        self.faults = FaultInjector(network, random)
        self._result = result
        self._network = network
        self._random = random
        self._record: ReshapingRecord | None = None
        """As the coordinator has written it down."""

    async def run(self) -> None:
        for epoch in range(1, self._random.randint(2, 3)):
            await asyncio.sleep(self._random.uniform(0.0, 2.0))
            await self._change(epoch)

    async def _change(self, epoch: int) -> None:
        random = self._random
        record = self._record = self._plan(f"change-{epoch}", epoch)
        moment, fault = random.choice(MOMENTS), random.choice((self._crash, self._cut, None))
        carrying = self._carry_out(record)
        if self.is_calm:
            pass
        elif fault is None:
            await self._until(moment, carrying)
            carrying.cancel()
            await asyncio.gather(carrying, return_exceptions=True)
            self.faults.happened.append(f"the coordinator crashes: {self._record.stage.value}")
            await asyncio.sleep(random.choice((0.0, 0.1, 2.0)))
            carrying = self._carry_out(self._record)
        else:
            injecting = asyncio.create_task(self._inject(moment, fault, carrying))
            await asyncio.gather(injecting, return_exceptions=False)
        self._ended(await carrying)

    def _ended(self, record: ReshapingRecord) -> None:
        self._network.has_shape(record)
        self.faults.happened.append(f"{record.change}: {record.stage.value} {record.reason}")

    def _plan(self, change: str, epoch: int) -> ReshapingRecord:
        target = shuffled_tree(self._network.topology, self._random)
        return self._network.plan_shape(target, change, epoch)

    def _carry_out(self, record: ReshapingRecord) -> asyncio.Task[ReshapingRecord]:
        brokers = self._network.topology.brokers
        return asyncio.create_task(
            carry_out(record, self._network.ask_epoch, self._save, brokers=brokers)
        )

    def _save(self, record: ReshapingRecord) -> None:
        before = self._record
        assert before is not None
        if before.stage is ReshapingStage.COMMITTED and record.stage is not ReshapingStage.DONE:
            self._result.wrong.append(f"{record.change} was committed, and is {record.stage.value}")
        self._record = record

    async def _inject(
        self, moment: str, fault: Callable[[], None], carrying: asyncio.Task[ReshapingRecord]
    ) -> None:
        await self._until(moment, carrying)
        await asyncio.sleep(self._random.uniform(0.0, self._random.choice(LATE_S)))
        fault()

    async def _until(self, moment: str, carrying: asyncio.Task[ReshapingRecord]) -> None:
        while not carrying.done() and not self._has_come(moment):  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)

    def _has_come(self, moment: str) -> bool:
        assert self._record is not None
        phases = {node.epochs.status.phase for node in self._network.nodes.values()}
        return moment in phases or moment == self._record.stage.value

    def _crash(self) -> None:
        self.faults.crash(self._random.choice(self._network.topology.brokers))

    def _cut(self) -> None:
        broker = self._random.choice(list(self._network.nodes))
        links = [hop for hop in self._network.nodes[broker].ports if hop.kind == "neighbour"]
        if links:
            self._network.cut(broker, self._random.choice(links))
            self.faults.happened.append(f"a link of {broker} breaks")


async def _check_when_quiet(
    result: Storm, network: MemoryNetwork, clients: list[StormClient]
) -> None:
    """Wait until all is acknowledged and every table is right; record what is wrong then."""
    if await becomes_true(lambda: not _errors(network, clients)):
        await asyncio.sleep(1.0)  # What was acknowledged has been received, but perhaps not read.
    else:
        result.wrong += _errors(network, clients)
    check_deliveries(result, clients)


def _errors(network: MemoryNetwork, clients: list[StormClient]) -> list[str]:
    sessions = [client.client.session for client in clients]
    tables = partial(table_errors, network.topology, network.tables(), sessions, network.lane)
    return unfinished(network, sessions) or tables() or stale_ports(network, sessions)


def unfinished(network: MemoryNetwork, sessions: Sequence[ClientSession]) -> list[str]:
    """Clients that wait, and brokers that are not done with the last change."""
    busy = [f"{s.name} waits" for s in sessions if not s.is_idle or s.is_moving]
    for name, node in network.nodes.items():
        status = node.epochs.status
        if status.epoch != network.lane or status.phase != EpochPhase.STEADY.value:
            busy.append(f"{name} is {status}, not at epoch {network.lane}")
        if node.hold is not None:
            busy.append(f"{name} still holds publications")
        stale = [hop for hop in node.ports if getattr(hop, "lane", network.lane) != network.lane]
        busy += [f"{name} still has {hop}" for hop in stale]
        node.broker.routing.check()
    return busy
