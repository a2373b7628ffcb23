"""Is what happened what was promised?

The oracle knows who had to receive what, once and in order.  A publication that did not arrive is a
violation if it was acknowledged to its publisher, unless its publisher or its subscriber was told
of a gap between them: then they know that something is missing, and where.  In a patient run, in
which everything is back in time, that is no excuse, with one exception.  A client that asks for the
name of another one ends its session, and may be gone before it has the name; if that one could not
be asked or told, it gets its name back, and is told that its session had ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from godwit.client import GapReason
from godwit.overlay.clusters.cluster_structure import ClusterStructure
from godwit.overlay.topology import Topology
from godwit.simulation.oracle import Violation, ViolationKind
from godwit.testing.nemesis.fault_kinds import FaultKind
from godwit.testing.nemesis.journal import (
    CONTEST_S,
    Journal,
    LifeRecord,
    PublicationRecord,
    ToldGap,
)
from godwit.testing.nemesis.nemesis_plan import EXTRA

#: A publisher is told before its publication is acknowledged.  A subscriber may be told later:
#: after the longest outage, the time-outs, and the restart of a broker on a busy machine.
SUBSCRIBER_LATE_S = 12.0
#: When the broker with a link too many leaves, which was the only way, the links that it stood in
#: for need so long to be up, after the end of a burst.
BRIDGE_S = 12.0


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
    violations: Iterable[Violation],
    journal: Journal,
    topology: Topology,
    *,
    is_patient: bool,
    structure: ClusterStructure | None = None,
) -> Findings:
    """Which of the oracle's violations break a promise.  In clusters, `structure` says which."""
    found = Findings()
    by_pair: dict[tuple[ViolationKind, str, str], list[int]] = {}
    for violation in violations:
        if violation.verdict is ViolationKind.LOST:
            published = journal.publications[violation.publisher, violation.sequence]
            if published.acknowledged_s is None:
                found.unacknowledged += 1
                continue
            if was_contested(published, journal.lives[violation.client]) or (
                not is_patient
                and was_told(published, violation.client, journal, topology, structure)
            ):
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


def was_contested(published: PublicationRecord, subscriber: LifeRecord) -> bool:
    """Whether a subscriber was told that it had no session, because of a client of its name."""
    from_s, until_s = published.published_s, published.acknowledged_s
    assert until_s is not None
    return any(
        contest_s <= gap.told_s <= contest_s + CONTEST_S
        and contest_s <= until_s
        and from_s <= gap.over_s
        for gap in subscriber.gaps
        for contest_s in subscriber.contests_s
        if gap.reason is GapReason.SESSION_ENDED
    )


def was_told(
    published: PublicationRecord,
    subscriber: str,
    journal: Journal,
    topology: Topology,
    structure: ClusterStructure | None = None,
) -> bool:
    """Whether one of the two was told of a gap on the way between them, at that time."""
    from_s, until_s = published.published_s, published.acknowledged_s
    assert until_s is not None
    source, target = journal.lives[published.life], journal.lives[subscriber]
    sources = source.brokers_between(from_s, until_s)
    targets = target.brokers_between(from_s, until_s + SUBSCRIBER_LATE_S)
    ways = [_way(topology, structure, a, b) for a in sources for b in targets]
    way = {hop for each in ways for hop in each}
    is_bridged = _is_bridged(ways, journal, topology)

    def explains(gap: ToldGap, late_s: float) -> bool:
        if gap.broker == EXTRA and is_bridged:  # It does not come back, and the network does.
            return gap.told_s <= until_s + late_s and from_s <= gap.told_s + BRIDGE_S
        is_about_then = gap.told_s <= until_s + late_s and from_s <= gap.over_s
        return is_about_then and gap.broker in way

    return any(explains(gap, 0.0) for gap in source.gaps) or any(
        explains(gap, SUBSCRIBER_LATE_S) for gap in target.gaps
    )


def _way(
    topology: Topology, structure: ClusterStructure | None, source: str, target: str
) -> list[str]:
    """The brokers on the way of a publication.

    Between clusters it is passed on by the broker of the ring, or one in its place: any mate of the
    target.
    """
    if structure is None:
        return topology.path(source, target)
    if structure.cluster_of(source) == structure.cluster_of(target):
        return [source, target]
    return [source, *structure.mates(target), target]


def _is_bridged(ways: Iterable[Sequence[str]], journal: Journal, topology: Topology) -> bool:
    """Whether the broker with a link too many could stand in for a broker or link of these ways.

    A link that was given up does not count any more: then a link too many is none.
    """
    wanted = {link for way in ways for link in _links(way)}
    extra = [each.where[1:] for each in journal.outages if each.kind is FaultKind.EXTRA_LINK]
    return any(not wanted.isdisjoint(_links(topology.path(a, b))) for a, b in extra)


def _links(way: Sequence[str]) -> set[frozenset[str]]:
    return {frozenset(pair) for pair in pairwise(way)}
