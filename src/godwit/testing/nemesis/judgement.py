"""Is what happened what was promised?

The oracle knows who had to receive what, once and in order.  A publication that did not arrive is a
violation if it was acknowledged to its publisher, unless its publisher or its subscriber was told
of a gap between them: then they know that something is missing, and where.  In a patient run, in
which everything is back in time, that is no excuse.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from godwit.overlay.topology import Topology
from godwit.simulation.oracle import Violation, ViolationKind
from godwit.testing.nemesis.journal import Journal, PublicationRecord, ToldGap

#: A publisher is told before its publication is acknowledged.  A subscriber may be told later:
#: after the longest outage, the time-outs, and the restart of a broker on a busy machine.
SUBSCRIBER_LATE_S = 12.0


@dataclass(slots=True)
class Findings:
    violations: list[str] = field(default_factory=list)
    concerned: set[tuple[str, str, int]] = field(default_factory=set)
    """Subscriber, publisher and number of publications in violations."""

    unacknowledged: int = 0
    """Deliveries that did not happen, and were not promised."""

    told: int = 0
    """Deliveries that did not happen, as clients were told."""


def judge(
    violations: Iterable[Violation], journal: Journal, topology: Topology, *, is_patient: bool
) -> Findings:
    """Which of the oracle's violations break a promise."""
    found = Findings()
    by_pair: dict[tuple[ViolationKind, str, str], list[int]] = {}
    for violation in violations:
        if violation.verdict is ViolationKind.LOST:
            published = journal.publications[violation.publisher, violation.sequence]
            if published.acknowledged_s is None:
                found.unacknowledged += 1
                continue
            if not is_patient and was_told(published, violation.client, journal, topology):
                found.told += 1
                continue
        found.concerned.add((violation.client, violation.publisher, violation.sequence))
        key = (violation.verdict, violation.client, violation.publisher)
        by_pair.setdefault(key, []).append(violation.sequence)
    found.violations = [_text(*key, numbers) for key, numbers in by_pair.items()]
    return found


def _text(verdict: ViolationKind, client: str, publisher: str, numbers: list[int]) -> str:
    shown = f"{len(numbers)} publications, {min(numbers)} to {max(numbers)}, of {publisher}"
    if len(numbers) == 1:
        shown = f"publication {numbers[0]} of {publisher}"
    return f"{shown}: {verdict.value} for {client}"


def was_told(
    published: PublicationRecord, subscriber: str, journal: Journal, topology: Topology
) -> bool:
    """Whether one of the two was told of a gap on the way between them, at that time."""
    from_s, until_s = published.published_s, published.acknowledged_s
    assert until_s is not None
    source, target = journal.lives[published.life], journal.lives[subscriber]
    sources = source.brokers_between(from_s, until_s)
    targets = target.brokers_between(from_s, until_s + SUBSCRIBER_LATE_S)
    way = {hop for a in sources for b in targets for hop in topology.path(a, b)}

    def explains(gap: ToldGap, late_s: float) -> bool:
        is_about_then = gap.told_s <= until_s + late_s and from_s <= gap.over_s
        return is_about_then and gap.broker in way

    return any(explains(gap, 0.0) for gap in source.gaps) or any(
        explains(gap, SUBSCRIBER_LATE_S) for gap in target.gaps
    )
