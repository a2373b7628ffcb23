"""Makes the faults of a plan happen, from outside: signals, proxies, clocks, crashes of clients."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Mapping
from typing import assert_never

from godwit.errors import UsageError
from godwit.testing.nemesis.clocks import SettableClock, library
from godwit.testing.nemesis.fault_kinds import FaultKind
from godwit.testing.nemesis.journal import Journal, OutageRecord
from godwit.testing.nemesis.memory_fleet import Fleet
from godwit.testing.nemesis.nemesis_plan import CLIENTS, CLOCK_S, EXTRA, PlannedFault
from godwit.testing.nemesis.people import Person
from godwit.testing.nemesis.tcp_proxy import Way

#: A slow link takes at most so long for each read.
DELAY_S = 0.4
#: What is planned for a client that is down waits so long for it, within the rest after a burst.
UP_S = 3.0
#: May happen while something else happens to the same link, broker or client.
_UNDISTURBED = (
    FaultKind.DROP,
    FaultKind.CLOCK,
    FaultKind.CLIENT,
    FaultKind.SECOND,
    FaultKind.TAKE_OVER,
)


class Outages:
    def __init__(
        self,
        fleet: Fleet,
        people: Mapping[str, Person],
        journal: Journal,
        clients_clock: SettableClock,
    ) -> None:
        self._fleet = fleet
        self._people = people
        self._journal = journal
        self._clients_clock = clients_clock
        self._locks: dict[str, asyncio.Lock] = {}

    async def inject(self, fault: PlannedFault) -> None:
        """Let it happen, and mend it."""
        async with self._alone(*self._touched(fault)):
            if fault.kind is FaultKind.CLOCK and library() is None:
                return
            person = self._people.get(fault.where[0])
            if person is not None and not await person.is_up(within_s=UP_S):
                return  # It crashed a moment ago, and its broker is down.
            self._journal.note(f"FAULT {fault}")
            self._journal.faults[fault.kind] += 1
            start_s = self._journal.now_s()
            await self._happen(fault)
            self._journal.note(f"mended: {fault}")
            over = OutageRecord(fault.kind, fault.where, start_s, self._journal.now_s())
            self._journal.outages.append(over)

    async def start_late(self, broker: str, late_s: float) -> None:
        """Start a broker when others wait for it; until then nothing happens to it."""
        async with self._alone(broker):
            await asyncio.sleep(late_s)
            await self._fleet.start(broker)
            self._journal.note(f"{broker} listens late")

    def _touched(self, fault: PlannedFault) -> tuple[str, ...]:
        if fault.kind is FaultKind.EXTRA_LINK:
            return (EXTRA,)
        if fault.kind in (FaultKind.CUT, FaultKind.CUT_ONE_WAY, FaultKind.SLOW):
            return ("-".join(fault.where),)
        if fault.kind is FaultKind.CONNECTIONS:
            return (f"door of {fault.where[0]}",)
        if fault.kind in _UNDISTURBED:
            return ()
        return fault.where

    @contextlib.asynccontextmanager
    async def _alone(self, *names: str) -> AsyncIterator[None]:
        """A broker that still starts, or a link that is cut, is not touched again."""
        async with contextlib.AsyncExitStack() as locks:
            for name in sorted(names):
                await locks.enter_async_context(self._locks.setdefault(name, asyncio.Lock()))
            yield

    async def _happen(self, fault: PlannedFault) -> None:
        match fault.kind:
            case FaultKind.KILL | FaultKind.KILL_LONG | FaultKind.KILL_TWO:
                await self._kill(fault)
            case FaultKind.STOP | FaultKind.STOP_LONG:
                await self._stop(fault)
            case FaultKind.CUT_ONE_WAY:
                await self._cut(fault, Way.FORTH if fault.amount < 0 else Way.BACK)
            case FaultKind.CUT:
                await self._cut(fault, *Way)
            case FaultKind.SLOW:
                await self._slow_down(fault)
            case FaultKind.DROP:
                self._fleet.links[_ends(fault)].drop()
            case FaultKind.CONNECTIONS:
                await self._break_connections(fault)
            case FaultKind.CLOCK:
                self._set_clock(fault)
            case FaultKind.CLIENT:
                back_at = None if fault.amount < 0 else self._some_broker(fault.amount)
                await self._people[fault.where[0]].crash(down_s=fault.lasts_s, back_at=back_at)
            case FaultKind.SECOND | FaultKind.TAKE_OVER:
                await self._people[fault.where[0]].meet_rival(
                    self._some_broker(fault.amount),
                    take_over=fault.kind is FaultKind.TAKE_OVER,
                )
            case FaultKind.EXTRA_LINK:
                await self._join_twice(fault)
            case FaultKind.DISK_FULL | FaultKind.COORDINATOR | FaultKind.DATACLUSTER:
                raise UsageError("services fail in runs of their own: service_run.py")
            case _:
                assert_never(fault.kind)

    def _some_broker(self, amount: float) -> str:
        brokers = self._fleet.topology.brokers
        return brokers[int(abs(amount) * len(brokers)) % len(brokers)]

    async def _kill(self, fault: PlannedFault) -> None:
        await self._fleet.kill(*fault.where)
        await asyncio.sleep(fault.lasts_s)
        async with asyncio.TaskGroup() as starting:
            for broker in fault.where:
                starting.create_task(self._fleet.start(broker))

    async def _stop(self, fault: PlannedFault) -> None:
        (broker,) = fault.where
        self._fleet.send(broker, signal.SIGSTOP)
        try:
            await asyncio.sleep(fault.lasts_s)
        finally:
            self._fleet.send(broker, signal.SIGCONT)

    async def _cut(self, fault: PlannedFault, *ways: Way) -> None:
        proxy = self._fleet.links[_ends(fault)]
        proxy.stall(*ways)
        await asyncio.sleep(fault.lasts_s)
        proxy.flow()

    async def _slow_down(self, fault: PlannedFault) -> None:
        proxy = self._fleet.links[_ends(fault)]
        proxy.delay_s = abs(fault.amount) * DELAY_S
        await asyncio.sleep(fault.lasts_s)
        proxy.delay_s = 0.0

    async def _break_connections(self, fault: PlannedFault) -> None:
        door = self._fleet.doors[fault.where[0]]
        if fault.amount < 0:
            door.drop()
            return
        door.stall()
        await asyncio.sleep(fault.lasts_s)
        door.drop()
        door.flow()

    async def _join_twice(self, fault: PlannedFault) -> None:
        extra, *ends = fault.where
        await self._fleet.join(extra, *ends)
        await asyncio.sleep(fault.lasts_s)
        code = await self._fleet.leave(extra)
        if code:
            self._journal.problem(f"broker {extra} ended with code {code}")

    def _set_clock(self, fault: PlannedFault) -> None:
        (where,) = fault.where
        clock = self._clients_clock if where == CLIENTS else self._fleet.clocks[where]
        clock.set(fault.amount * CLOCK_S)


def _ends(fault: PlannedFault) -> tuple[str, str]:
    a, b = fault.where
    return a, b
