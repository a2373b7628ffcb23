"""Zones of the content space, their owners, and the way of a message from zone to zone.

Paper    Meghdoot on CAN: each broker owns a zone and knows the owners of the zones that touch it;
         a message goes to the zone that is nearest to its destination, until it is there.

Each step comes nearer: where the straight line to the destination leaves a zone, a zone begins that
touches it.  So every message arrives, and on the same way if sender and destination are the same.

A zone with several owners is replicated: each of them has all its subscriptions, and a publication
goes to one of them.

Departs  1. The square has borders, as Meghdoot's; a CAN has none.
         2. Of several owners the one for a publication is fixed by its publisher: in turns, its
            publications would overtake each other.

Z1  Zones do not overlap, and fill the space.
Z2  Every broker owns one zone, alone or with others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any
from zlib import crc32

from godwit.content.filters import Filter
from godwit.content.values import Value
from godwit.errors import UsageError
from godwit.overlay.dht.content_space import ContentSpace, Point, Span
from godwit.overlay.topology import Topology, topology

#: Points whose zones are remembered.
POINTS_KEPT = 4_096


@dataclass(frozen=True, slots=True)
class Zone:
    sides: tuple[tuple[float, float], ...]
    """For each dimension from where to where; the end does not belong to it."""

    owners: tuple[str, ...]

    def has(self, point: Point) -> bool:
        return all(low <= x < high for x, (low, high) in zip(point, self.sides, strict=True))

    def meets(self, part: Sequence[Sequence[Span]]) -> bool:
        return all(
            any(first < high and last >= low for first, last in spans)
            for spans, (low, high) in zip(part, self.sides, strict=True)
        )

    def touches(self, other: Zone) -> bool:
        """Whether they have a point of their borders in common, a corner at least."""
        sides = zip(self.sides, other.sides, strict=True)
        return all(low <= end and start <= high for (low, high), (start, end) in sides)

    @property
    def centre(self) -> Point:
        return tuple((low + high) / 2 for low, high in self.sides)

    @property
    def volume(self) -> float:
        volume = 1.0
        for low, high in self.sides:
            volume *= high - low
        return volume

    def distance(self, point: Point) -> float:
        """The square of the distance of a point; 0 within."""
        sides = zip(point, self.sides, strict=True)
        return sum(max(low - x, 0.0, x - high) ** 2 for x, (low, high) in sides)


class ZoneMap:
    """All zones; every broker has the same map."""

    def __init__(self, space: ContentSpace, zones: Sequence[Zone], *, is_direct: bool) -> None:
        """`is_direct`: publications go to their owner over one link, not from zone to zone."""
        self.space = space
        self.zones = tuple(zones)
        self.is_direct = is_direct
        self._zone_at = lru_cache(POINTS_KEPT)(self._find_zone)
        self._next_zone = lru_cache(None)(self._find_next_zone)
        if not self.zones or len(self._number_of) != len(self.brokers):
            raise UsageError("every broker owns one zone, and every zone has an owner")

    @cached_property
    def _number_of(self) -> dict[str, int]:
        return {owner: n for n, zone in enumerate(self.zones) for owner in zone.owners}

    @cached_property
    def brokers(self) -> tuple[str, ...]:
        return tuple(sorted(owner for zone in self.zones for owner in zone.owners))

    def zone_of(self, broker: str) -> Zone:
        try:
            return self.zones[self._number_of[broker]]
        except KeyError:
            raise UsageError(f"broker {broker} owns no zone") from None

    # -- who has what --------------------------------------------------------------------------

    def owners_of(self, filter: Filter) -> list[str]:
        """The brokers that have to have a subscription."""
        part = self.space.part(filter)
        return [owner for zone in self.zones if zone.meets(part) for owner in zone.owners]

    def owner_of(self, content: Mapping[str, Value], publisher: str) -> str:
        """The broker that matches a publication."""
        owners = self.zones[self._zone_at(self.space.point(content))].owners
        return owners[crc32(publisher.encode()) % len(owners)]

    def _find_zone(self, point: Point) -> int:
        return next(n for n, zone in enumerate(self.zones) if zone.has(point))

    # -- the way -------------------------------------------------------------------------------

    def next_hop(self, at: str, to: str) -> str:
        """The next broker on the way to another one."""
        here, there = self._number_of[at], self._number_of[to]
        if here == there or self.is_direct:
            return to
        following = self._next_zone(here, there)
        owners = self.zones[following].owners
        return to if following == there else owners[crc32(at.encode()) % len(owners)]

    def _find_next_zone(self, here: int, there: int) -> int:
        centre = self.zones[there].centre
        return min(self._touching[here], key=lambda n: (self.zones[n].distance(centre), n))

    @cached_property
    def _touching(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {number: [] for number in range(len(self.zones))}
        for (a, one), (b, other) in combinations(enumerate(self.zones), 2):
            if one.touches(other):
                found[a].append(b)
                found[b].append(a)
        return found

    def way(self, at: str, to: str) -> Iterator[str]:
        """The brokers that a message passes, `to` included."""
        while at != to:
            at = self.next_hop(at, to)
            yield at

    @cached_property
    def hop_links(self) -> dict[str, set[tuple[str, int]]]:
        """The links of each broker for publications: the other end, and the how many-eth link of a
        way it is.
        """
        found: dict[str, set[tuple[str, int]]] = {broker: set() for broker in self.brokers}
        for source in self.brokers:
            for target in self.brokers:
                at = source
                for crossed, following in enumerate(self.way(source, target), 1):
                    found[at].add((following, crossed))
                    found[following].add((at, crossed))
                    at = following
        return found

    # -- links ---------------------------------------------------------------------------------

    @cached_property
    def topology(self) -> Topology:
        """Links between all brokers: owners have to reach every subscriber's broker."""
        return topology(self.brokers, combinations(self.brokers, 2))

    @cached_property
    def backbone(self) -> Topology:
        """A tree of some of these links, for what has to reach every broker exactly once."""
        names = self.brokers
        return topology(names, ((names[(i - 1) // 2], names[i]) for i in range(1, len(names))))


def zones_of(settings: Mapping[str, Any]) -> ZoneMap:
    """The map that these settings have (`dht_settings`)."""
    zones = settings.get("zones")
    if not isinstance(zones, ZoneMap):
        raise UsageError("the overlay `dht` needs the zones of all brokers: see overlay/dht/")
    return zones


def dht_settings(zones: ZoneMap) -> dict[str, Any]:
    """The settings from which each broker finds its place (`Place.settings`)."""
    return {"zones": zones}
