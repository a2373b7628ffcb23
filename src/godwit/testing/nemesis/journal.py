"""What happened in a run, as its clients saw it, and what they were told.

Times are seconds since the start of the run, by a monotonic clock.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

from godwit.client import GapReason
from godwit.testing.nemesis.fault_kinds import FaultKind

#: A client that wanted the name of another one may have given up before it was granted.
CONTEST_S = 15.0


@dataclass(slots=True)
class PublicationRecord:
    """One publication, from its publisher's side."""

    life: str
    number: int
    broker: str
    """Where its publisher was."""

    published_s: float
    acknowledged_s: float | None = None


@dataclass(slots=True)
class ToldGap:
    """A client was told that publications are missing, or may be."""

    broker: str
    """The one that is gone, or has ended the session."""

    key: object
    """The same when the client is told that the gap is over."""

    told_s: float
    over_s: float = inf
    reason: GapReason = GapReason.PART_LOST


@dataclass(slots=True)
class LifeRecord:
    """One life of a client: from connecting to its end, by a crash or otherwise."""

    name: str
    brokers: list[tuple[float, str]] = field(default_factory=list)
    """Where it was, since when."""

    gaps: list[ToldGap] = field(default_factory=list)
    contests_s: list[float] = field(default_factory=list)
    """When another client of its name called, or was there when it called."""

    ended_s: float = inf
    """When it crashed, was closed, or had lost its name."""

    def on_gap(self, gap: ToldGap, *, is_over: bool) -> None:
        """The client is told that a gap begins, or is over, or of one that is over already."""
        begun = [each for each in self.gaps if each.key == gap.key and each.over_s == inf]
        for each in begun:
            each.over_s = gap.told_s
        if not begun:
            gap.over_s = gap.told_s if is_over else inf
            self.gaps.append(gap)

    def was_told(self, broker: str, since_s: float) -> bool:
        """Whether it was told since then that this broker is lost."""
        return any(gap.broker == broker and gap.told_s >= since_s for gap in self.gaps)

    def brokers_between(self, from_s: float, until_s: float) -> set[str]:
        found = {broker for at_s, broker in self.brokers if from_s < at_s <= until_s}
        before = [broker for at_s, broker in self.brokers if at_s <= from_s]
        return found | set(before[-1:])


@dataclass(frozen=True, slots=True)
class OutageRecord:
    """Something failed, from when it did until it was mended."""

    kind: FaultKind
    where: tuple[str, ...]
    start_s: float
    end_s: float


class Journal:
    def __init__(self) -> None:
        self.events: list[tuple[float, str]] = []
        self.faults: Counter[FaultKind] = Counter()
        self.counts: Counter[str] = Counter()
        """Requests that succeeded, by kind."""
        self.outages: list[OutageRecord] = []
        self.publications: dict[tuple[str, int], PublicationRecord] = {}
        self.lives: dict[str, LifeRecord] = {}
        self.problems: list[str] = []
        """What is wrong in itself: a hang, a request that failed, a process that ended."""
        self.pending: dict[int, str] = {}
        """Requests that have not been answered yet."""
        self._start_s = time.monotonic()
        self._serial = 0

    def now_s(self) -> float:
        return time.monotonic() - self._start_s

    def note(self, text: str) -> None:
        self.events.append((self.now_s(), text))

    def problem(self, text: str) -> None:
        self.note(f"PROBLEM {text}")
        self.problems.append(text)

    @contextlib.contextmanager
    def requesting(self, text: str) -> Iterator[None]:
        """For the time of a request: should it hang, it is listed."""
        self._serial += 1
        serial = self._serial
        self.pending[serial] = f"{text}, since {self.now_s():.2f} s"
        try:
            yield
        finally:
            del self.pending[serial]
