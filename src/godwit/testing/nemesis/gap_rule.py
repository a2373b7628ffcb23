"""A broker that is given up is a gap: who must have been told of it, whatever was published.

A loss is explained by any gap on the way at that time, and when much fails there are many.  So this
is judged by itself, where nothing else can be the reason: a broker was dead for longer than
`link_s`; a neighbour was left alone before, meanwhile and afterwards; and a client was connected to
that neighbour all the time.  It must have been told.
"""

from __future__ import annotations

from collections.abc import Iterator

from godwit.overlay.topology import Topology
from godwit.testing.nemesis.fault_kinds import FaultKind
from godwit.testing.nemesis.journal import Journal, LifeRecord, OutageRecord

#: A broker whose neighbours must have given it up was dead for longer than `link_s`, by this.
MARGIN_S = 0.5
#: Neighbours and clients were left alone for so long before.
BEFORE_S = 5.0
#: ... and afterwards, which is also the time to be told.
AFTER_S = 2.0


def untold_gaps(journal: Journal, topology: Topology, link_s: float) -> list[str]:
    """Clients that were not told of a broker that their own one must have given up."""
    return [
        f"{key} at {neighbour} was not told that {dead.where[0]} was lost"
        f" from {dead.start_s:.2f} to {dead.end_s:.2f} s"
        for dead, neighbour in _given_up(journal, topology, link_s)
        for key, life in journal.lives.items()
        if _stayed_at(life, neighbour, dead) and not _was_told(life, dead)
    ]


def _given_up(
    journal: Journal, topology: Topology, link_s: float
) -> Iterator[tuple[OutageRecord, str]]:
    for dead in journal.outages:
        if dead.kind is FaultKind.KILL_LONG and dead.end_s - dead.start_s > link_s + MARGIN_S:
            for neighbour in topology.neighbours(dead.where[0]):
                if not any(_disturbs(other, neighbour, dead) for other in journal.outages):
                    yield dead, neighbour


def _disturbs(other: OutageRecord, neighbour: str, dead: OutageRecord) -> bool:
    """Whether something else happened to the neighbour, or to both of them."""
    is_then = other.start_s < dead.end_s + AFTER_S and dead.start_s - BEFORE_S < other.end_s
    is_there = neighbour in other.where or dead.where[0] in other.where
    return is_then and is_there and other is not dead


def _stayed_at(life: LifeRecord, broker: str, dead: OutageRecord) -> bool:
    from_s, until_s = dead.start_s - BEFORE_S, dead.end_s + AFTER_S
    is_there = bool(life.brokers) and life.brokers[0][0] < from_s and until_s < life.ended_s
    return is_there and life.brokers_between(from_s, until_s) == {broker}


def _was_told(life: LifeRecord, dead: OutageRecord) -> bool:
    return any(
        gap.broker == dead.where[0] and dead.start_s <= gap.told_s <= dead.end_s + AFTER_S
        for gap in life.gaps
    )
