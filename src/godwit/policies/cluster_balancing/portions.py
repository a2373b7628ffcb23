"""Which work is handed to which mate: the excess only, to the least loaded first, never more than
it has accepted.

Paper    Cluster-based pub/sub (document 003), section 3.3, algorithm 2; "portion" is not defined
         there.

    ring work      of a publisher with x publications in a time unit, to k other clusters: the
                   broker sends x copies to the helper instead of x k, which sends the x k
    cluster work   of a publisher with s copies to mates: x copies to the helper instead of s

So handing over costs a copy, and pays only if it saves more.  Whole publishers are handed over, for
each cluster: see departure 1 of overlay/clusters/steered_routing.py.

P1  What a mate gets is at most what it has accepted.
P2  Nothing is handed over that saves nothing, nor when the excess is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor

from godwit.broker.routing import RouteCluster, RouteRing


@dataclass(slots=True)
class Offer:
    """What a mate has accepted."""

    helper: str
    load: float
    amount: float
    taken: float = 0.0

    @property
    def left(self) -> float:
        return self.amount - self.taken


@dataclass(frozen=True, slots=True)
class RingWork:
    publisher: str
    publications: float
    """In a time unit."""

    clusters: tuple[int, ...]
    """To which the broker passes them on itself."""

    helpers: frozenset[str] = frozenset()
    """Brokers that pass them on to others already: a further cluster costs no further copy."""


@dataclass(frozen=True, slots=True)
class ClusterWork:
    publisher: str
    publications: float
    sends: float

    @property
    def saved(self) -> float:
        return self.sends - self.publications

    @property
    def added(self) -> float:
        """To the load of a helper."""
        return self.sends + self.publications


def least_loaded(offers: Iterable[Offer]) -> list[Offer]:
    return sorted(offers, key=lambda offer: (offer.load + offer.taken, offer.helper))


def hand_over_rings(
    excess: float, works: Sequence[RingWork], offers: Sequence[Offer]
) -> tuple[float, list[RouteRing]]:
    """What to hand over of the ring publish load; returns the excess that remains."""
    routes: list[RouteRing] = []
    for work in sorted(works, key=lambda work: (-work.publications, work.publisher)):
        kept, x = list(work.clusters), work.publications
        for offer in least_loaded(offers):
            if excess <= 0 or x <= 0:  # P2
                break
            copy = 0 if offer.helper in work.helpers else 1
            wanted, possible = ceil(excess / x) + copy, floor(offer.left / x) - copy  # P1
            count = min(len(kept), wanted, possible)
            if count <= copy:
                continue
            handed, kept = kept[:count], kept[count:]
            routes.append(RouteRing(work.publisher, tuple(handed), offer.helper))
            offer.taken += x * (count + copy)
            excess -= x * (count - copy)
    return excess, routes


def hand_over_clusters(
    excess: float, works: Sequence[ClusterWork], offers: Sequence[Offer]
) -> tuple[float, list[RouteCluster]]:
    """What to hand over of the cluster publish load; returns the excess that remains."""
    routes: list[RouteCluster] = []
    left = [work for work in works if work.saved > 0]  # P2
    while excess > 0 and left:
        # The smallest that is enough, else the largest.
        enough = [work for work in left if work.saved >= excess]
        work = min(enough, key=_size) if enough else max(left, key=_size)
        left.remove(work)
        takers = [offer for offer in least_loaded(offers) if offer.left >= work.added]  # P1
        if takers:
            routes.append(RouteCluster(work.publisher, takers[0].helper))
            takers[0].taken += work.added
            excess -= work.saved
    return excess, routes


def _size(work: ClusterWork) -> tuple[float, str]:
    return work.saved, work.publisher
