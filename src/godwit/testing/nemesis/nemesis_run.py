"""One run: brokers start, clients act, things fail, all is mended, and what happened is judged.

    result = asyncio.run(NemesisRun(plan, fleet, SettableClock(...)).run())

When all is mended, the network has SETTLE_S to answer all that was asked for and to pass a fence
from every client to every other one: what was published before a fence has arrived, or never will.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import msgspec

from godwit.client import Client
from godwit.errors import GodwitError
from godwit.simulation.oracle import Oracle
from godwit.testing.nemesis.clocks import SettableClock
from godwit.testing.nemesis.fault_kinds import FaultKind
from godwit.testing.nemesis.gap_rule import untold_gaps
from godwit.testing.nemesis.journal import Journal
from godwit.testing.nemesis.judgement import Findings, judge
from godwit.testing.nemesis.memory_fleet import Fleet
from godwit.testing.nemesis.nemesis_plan import EXTRA, NemesisPlan
from godwit.testing.nemesis.outages import Outages
from godwit.testing.nemesis.patience import in_time
from godwit.testing.nemesis.people import Person

#: For everything to be answered when all is mended: each time-out, and the longest back-off.
SETTLE_S = 40.0
FENCE_EVERY_S = 0.5
POLL_S = 0.05
VIOLATIONS_KEPT_MAX = 100_000
STORY_EVENTS_MAX = 2_000
#: Requests that are shown in the report of a hang; all of them are in the story.
SHOWN_MAX = 5
#: What the log of a broker says that has a link too many.
CYCLE = "would close a cycle"
#: For faults that wait for others on the same broker.
MEND_S = 60.0


class NemesisResult(msgspec.Struct):
    seed: int
    brokers: int
    seconds: float
    publications: int = 0
    acknowledged: int = 0
    deliveries: int = 0
    told: int = 0
    """Deliveries that did not happen, as clients were told."""

    unacknowledged: int = 0
    """Deliveries of unacknowledged publications that did not happen."""

    gaps: int = 0
    """Gaps that clients were told of."""

    settle_s: float = 0.0
    """How long it took until all was quiet."""

    faults: dict[str, int] = {}
    requests: dict[str, int] = {}
    violations: list[str] = []
    story: list[str] = []

    @property
    def is_flawless(self) -> bool:
        return not self.violations


class NemesisRun:
    def __init__(self, plan: NemesisPlan, fleet: Fleet, clock: SettableClock) -> None:
        """`clock` is the one of this process."""
        self._plan = plan
        self._journal = journal = Journal()
        self._oracle = Oracle(violations_kept_max=VIOLATIONS_KEPT_MAX)
        self._fleet = fleet
        self._people = {
            person.name: Person(person, fleet, journal, self._oracle, self._on_fence)
            for person in plan.people
        }
        self._outages = Outages(self._fleet, self._people, journal, clock)
        self._fences: dict[tuple[str, str], int] = {}
        """Publisher and subscriber -> the last fence that has arrived."""

    async def run(self) -> NemesisResult:
        plan, journal = self._plan, self._journal
        result = NemesisResult(plan.seed, len(plan.topology.brokers), plan.seconds)
        await self._fleet.prepare()
        try:
            await self._in_time("all to be mended", self._act(), plan.seconds + MEND_S)
            mended_s = journal.now_s()
            journal.note("all is mended")
            await self._in_time("all to be quiet", self._settle(), SETTLE_S)
            result.settle_s = journal.now_s() - mended_s
            await self._in_time("a second client to be refused", self._meet_seconds(), SETTLE_S)
            await self._in_time("a lost broker to be told", self._lose_broker(), SETTLE_S)
            await self._in_time("a cycle to be refused", self._close_cycle(), SETTLE_S)
            closing = asyncio.gather(*(person.close() for person in self._people.values()))
            await self._in_time("clients to close", closing, SETTLE_S)
        finally:
            for broker in self._fleet.ended_by_themselves():
                journal.problem(f"broker {broker} ended by itself")
            codes = await self._fleet.stop()
        for broker, code in codes.items():
            if code:
                journal.problem(f"broker {broker} did not stop in time, or ended with code {code}")
        self._oracle.finish(journal.now_s())
        found = judge(
            self._oracle.violations,
            journal,
            plan.topology,
            is_patient=plan.is_patient,
            structure=plan.structure,
        )
        for untold in untold_gaps(journal, plan.topology, plan.limits.link_s):
            journal.problem(untold)
        self._report(result, found)
        return result

    async def _in_time(self, what: str, doing: Awaitable[object], within_s: float) -> None:
        """A hang is a problem, with the requests that have not been answered."""
        try:
            await in_time(doing, within_s)
        except TimeoutError:
            untold = [f"{key} is not told of the other client" for key in self._untold()]
            waiting = [*self._journal.pending.values(), *untold] or [self._missing_fences()]
            self._journal.note(f"waits: {'; '.join(waiting)}")
            more = f"; and {len(waiting) - SHOWN_MAX} more" if len(waiting) > SHOWN_MAX else ""
            shown = "; ".join(waiting[:SHOWN_MAX])
            self._journal.problem(f"waited {within_s:g} s for {what}: {shown}{more}")
        except (GodwitError, ExceptionGroup) as error:
            causes = error.exceptions if isinstance(error, ExceptionGroup) else (error,)
            for cause in causes:
                self._journal.problem(f"{what}: {type(cause).__name__}: {cause}")

    async def _act(self) -> None:
        plan, journal = self._plan, self._journal
        async with asyncio.TaskGroup() as starting:
            for broker in plan.topology.brokers:
                if broker not in plan.late_s:
                    starting.create_task(self._fleet.start(broker))
        journal.note("brokers listen")
        async with asyncio.TaskGroup() as acting:
            for broker, late_s in plan.late_s.items():
                acting.create_task(self._outages.start_late(broker, late_s))
            for person in self._people.values():
                acting.create_task(person.act_all())
            start_s = journal.now_s()
            for fault in plan.faults:
                await asyncio.sleep(max(0.0, start_s + fault.at_s - journal.now_s()))
                acting.create_task(self._outages.inject(fault))

    # -- the end -------------------------------------------------------------------------------

    async def _settle(self) -> None:
        """Wait until every request is answered, and a fence has passed every way."""
        await self._all_answered()
        await self._all_linked()
        while self._untold():  # noqa: ASYNC110  As above.
            await asyncio.sleep(POLL_S)
        round = 0
        while self._missing_fences():
            round += 1
            for person in self._people.values():
                if person.life is not None:
                    await person.life.publish_fence(round)
            await asyncio.sleep(FENCE_EVERY_S)
        await self._all_answered()

    async def _all_answered(self) -> None:
        while self._journal.pending:  # noqa: ASYNC110  Many requests, of which few are left.
            await asyncio.sleep(POLL_S)

    async def _all_linked(self) -> None:
        """Wait until every broker knows that all are there, also those without clients."""
        for broker in self._plan.topology.brokers:
            async with self._fleet.connect(self._fleet.url(broker)) as client:
                while missing := await self._missing_for(client):
                    self._journal.note(f"{broker} misses {', '.join(sorted(missing))}")
                    await asyncio.sleep(FENCE_EVERY_S)

    async def _missing_for(self, client: Client) -> set[str]:
        missing = {each.name for each in (await client.status()).missing}
        return missing.intersection(self._plan.topology.brokers)

    async def _meet_seconds(self) -> None:
        """A name that is in use is refused, at its own broker and at others."""
        if self._journal.problems or not self._has(FaultKind.SECOND):
            return
        for person, broker in zip(self._people.values(), self._plan.topology.brokers, strict=False):
            if not await person.is_alone(broker):
                self._journal.problem(f"{broker} let a second {person.name} in")

    async def _lose_broker(self) -> None:
        """When all is quiet, nothing else can be the reason if a client is not told of a gap."""
        if self._journal.problems or not self._has(FaultKind.KILL_LONG):
            return
        lives = [person.life for person in self._people.values() if person.life is not None]
        neighbours = self._plan.topology.neighbours
        lost = next(b for life in lives for b in neighbours(life.session_broker))
        told = [life.record for life in lives if life.session_broker in neighbours(lost)]
        self._journal.note(f"{lost} is killed until it is given up")
        start_s = self._journal.now_s()
        await self._fleet.kill(lost)
        try:
            while not all(record.was_told(lost, start_s) for record in told):  # noqa: ASYNC110
                await asyncio.sleep(POLL_S)
        finally:
            await self._fleet.start(lost)
        self._fences.clear()
        await self._settle()

    async def _close_cycle(self) -> None:
        """A link too many is refused by the broker that made it, and nothing else notices."""
        ends = [
            fault.where[1:] for fault in self._plan.faults if fault.kind is FaultKind.EXTRA_LINK
        ]
        if self._journal.problems or not ends:
            return
        before = len(self._fleet.log(EXTRA))
        await self._fleet.join(EXTRA, *ends[0])
        while not any(CYCLE in line for line in self._fleet.log(EXTRA)[before:]):  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)
        self._fences.clear()
        await self._settle()
        await self._fleet.leave(EXTRA)

    def _has(self, kind: FaultKind) -> bool:
        return any(fault.kind is kind for fault in self._plan.faults)

    def _untold(self) -> list[str]:
        return [key for person in self._people.values() for key in person.untold]

    def _on_fence(self, publisher: str, subscriber: str, round: int) -> None:
        self._fences[publisher, subscriber] = round

    def _missing_fences(self) -> str:
        keys = [p.life.key for p in self._people.values() if p.life is not None]
        missing = [
            f"{a} to {b}" for a in keys for b in keys if a != b and (a, b) not in self._fences
        ]
        return f"fences {', '.join(missing)}" if missing else ""

    def _report(self, result: NemesisResult, judgement: Findings) -> None:
        journal = self._journal
        acknowledged = [p for p in journal.publications.values() if p.acknowledged_s is not None]
        result.publications = len(journal.publications)
        result.acknowledged = len(acknowledged)
        result.deliveries = self._oracle.deliveries
        result.told, result.unacknowledged = judgement.told, judgement.unacknowledged
        result.gaps = sum(len(life.gaps) for life in journal.lives.values())
        result.faults = {kind.value: count for kind, count in journal.faults.items()}
        result.requests = dict(journal.counts)
        result.violations = [*journal.problems, *judgement.violations]
        if result.violations:
            result.story = self._story(judgement)

    def _story(self, judgement: Findings) -> list[str]:
        """What happened: faults and requests, the publications concerned, the brokers' logs."""
        journal = self._journal
        kind = "tree" if self._plan.clusters is None else f"{self._plan.clusters} clusters"
        links = " ".join("-".join(link) for link in sorted(self._plan.topology.links))
        lines = [f"{kind}: {links}"]
        lines += [f"{at_s:7.2f} {text}" for at_s, text in journal.events[:STORY_EVENTS_MAX]]
        for _, publisher, number in sorted(judgement.concerned)[:40]:
            lines.append(str(journal.publications[publisher, number]))
        for broker in (*self._plan.topology.brokers, EXTRA):
            lines += [f"-- log of {broker}", *self._fleet.log_tail(broker)]
        return lines
