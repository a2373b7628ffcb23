"""How zones come about: brokers join one after the other, each at the busiest zone.

Paper    Meghdoot (as document 003 has it, section 5): a broker that joins relieves the busiest one;
         its zone is split, so that half of the subscriptions go to the new broker, or replicated.

    busiest      of all zones, by what an owner has to do: its subscriptions, and its part of the
                 publications
    split        in two, where the larger part is as small as can be, or a little larger if that
                 keeps zones square: ways are short then
    replicate    if no split divides it: all its load is at one point, a popular event

Departs  1. Meghdoot measures load while it runs.  Here a sample of subscriptions and publications
            is given before, and zones do not change later.  Without a sample zones are equal.
         2. Meghdoot replicates if publications are the cause.  Here a split is tried first: two
            zones also halve the subscriptions, which replicas do not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from godwit.content.filters import Filter
from godwit.content.values import Value
from godwit.errors import UsageError
from godwit.overlay.dht.content_space import ContentSpace, Point, Span
from godwit.overlay.dht.zones import Zone, ZoneMap

#: A division may be so much worse than the best one if its zones are more like squares.
EVEN_ENOUGH = 1.1


@dataclass(frozen=True, slots=True)
class _Sample:
    """What is subscribed to and published, in one unit of time."""

    parts: Mapping[tuple[tuple[Span, ...], ...], int]
    points: Mapping[Point, int]

    def within(self, zone: Zone) -> _Sample:
        return _Sample(
            {part: n for part, n in self.parts.items() if zone.meets(part)},
            {point: n for point, n in self.points.items() if zone.has(point)},
        )

    @property
    def subscriptions(self) -> int:
        return sum(self.parts.values())

    @property
    def publications(self) -> int:
        return sum(self.points.values())

    def places(self, dimension: int) -> list[float]:
        """Coordinates at which it can be divided."""
        found = {point[dimension] for point in self.points}
        for part in self.parts:
            found |= {end for span in part[dimension] for end in span}
        return sorted(found)


_Halves: TypeAlias = tuple[tuple[Zone, _Sample], ...]


def join_all(
    brokers: Sequence[str],
    space: ContentSpace,
    *,
    subscriptions: Iterable[Filter] = (),
    publications: Iterable[Mapping[str, Value]] = (),
    is_direct: bool = False,
) -> ZoneMap:
    """The zones after all brokers have joined."""
    if not brokers:
        raise UsageError("a distributed hash table has one broker or more")
    sample = _Sample(
        Counter(space.part(each) for each in subscriptions),
        Counter(space.point(each) for each in publications),
    )
    whole = Zone(tuple((0.0, 1.0) for _ in space.dimensions), (brokers[0],))
    zones = [(whole, sample)]
    for broker in brokers[1:]:
        busiest = max(range(len(zones)), key=lambda n: _load(*zones[n]))
        zone, within = zones[busiest]
        zones[busiest : busiest + 1] = _relieve(zone, within, broker)
    return ZoneMap(space, [zone for zone, _ in zones], is_direct=is_direct)


def _load(zone: Zone, sample: _Sample) -> tuple[float, float]:
    """Of each owner; of zones without load, the largest is the busiest."""
    replicas = len(zone.owners)
    return sample.subscriptions + sample.publications / replicas, zone.volume / replicas


def _relieve(zone: Zone, sample: _Sample, broker: str) -> list[tuple[Zone, _Sample]]:
    """The zone with a further broker: two zones, or one with a further owner."""
    before = _load(zone, sample)[0]
    divided = list(_divisions(zone, sample, broker)) if len(zone.owners) == 1 else []
    if divided:
        least = min(map(_larger, divided))
        even = [halves for halves in divided if _larger(halves) <= least * EVEN_ENOUGH]
        best = min(even, key=lambda halves: max(_longest_side(half) for half, _ in halves))
        if not before or _larger(best) < before:
            return list(best)
    return [(replace(zone, owners=(*zone.owners, broker)), sample)]


def _larger(halves: _Halves) -> float:
    return max(_load(*half)[0] for half in halves)


def _longest_side(zone: Zone) -> float:
    return max(high - low for low, high in zone.sides)


def _divisions(zone: Zone, sample: _Sample, broker: str) -> Iterator[_Halves]:
    """Ways to split a zone: in its middle, or between two places in the middle of its load."""
    for dimension, (low, high) in enumerate(zone.sides):
        places = [place for place in sample.places(dimension) if low < place < high]
        middle = places[len(places) // 2 : len(places) // 2 + 1]
        for at in {(low + high) / 2, *middle}:
            if low < at < high:
                halves = ((low, at), zone.owners), ((at, high), (broker,))
                yield tuple(
                    (half, sample.within(half))
                    for side, owners in halves
                    for half in [Zone(_with_side(zone, dimension, side), owners)]
                )


def _with_side(
    zone: Zone, dimension: int, side: tuple[float, float]
) -> tuple[tuple[float, float], ...]:
    return (*zone.sides[:dimension], side, *zone.sides[dimension + 1 :])
