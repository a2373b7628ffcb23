"""The content space of a distributed hash table: publications are points, filters meet parts of it.

Paper    Meghdoot, a baseline of cluster-based pub/sub (document 003, sections 4 and 5).

A dimension belongs to an attribute.  Its coordinates go from 0 to 1:

    numbers             keep their order between `low` and `high`: a range is an interval
    strings, booleans   are hashed: equality is a point, any other predicate meets everything
    absent              is 0; a filter without a predicate on the attribute meets everything

Departs  1. Meghdoot stores a subscription as one point in a space of twice the dimensions (the
            bounds of its ranges), and passes a publication through all zones that may have
            matching points.  Here a subscription is with the owner of every zone that it meets,
            and a publication goes to one owner: the rendezvous of ALGORITHMS.md 9A.6.
         2. An attribute may have several dimensions, with different hashes: an attribute that is
            only compared for equality is spread over a square instead of a line, as in CAN.

D1  A filter meets the point of every publication that it matches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nextafter
from typing import TypeAlias
from zlib import crc32

from godwit.content.filters import Filter
from godwit.content.regions import NOTHING, Constraint, Interval, OneOf, Region
from godwit.content.values import Value
from godwit.errors import UsageError

#: The largest coordinate: zones are half open, and the space ends with 1.
LAST = nextafter(1.0, 0.0)

Point: TypeAlias = tuple[float, ...]
Span: TypeAlias = tuple[float, float]
"""From the first coordinate to the last one, both included."""

EVERYTHING: Span = (0.0, LAST)


@dataclass(frozen=True, slots=True)
class Dimension:
    attribute: str
    low: float = 0.0
    high: float = 1.0
    """Numbers from `low` to `high` are told apart."""

    salt: int = 0
    """Of the hash; with another one than 0 numbers are hashed, too."""

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise UsageError(f"dimension {self.attribute}: `low` must be less than `high`")

    def coordinate(self, value: Value) -> float:
        if isinstance(value, str | bool) or self.salt:
            # Equal numbers have equal hashes in Python, in all processes.
            kind, key = ("s", value) if isinstance(value, str) else ("n", hash(value))
            return crc32(f"{self.salt} {kind} {key}".encode()) / 2**32
        if value <= self.low:
            return 0.0
        if value >= self.high:
            return LAST
        return min((value - self.low) / (self.high - self.low), LAST)

    def spans(self, constraint: Constraint) -> tuple[Span, ...]:
        """The coordinates that a constraint may have."""
        regions = (constraint.numbers, constraint.strings, constraint.booleans)
        return tuple(span for region in regions for span in self._spans(region))

    def _spans(self, region: Region) -> Sequence[Span]:
        if region is NOTHING:
            return ()
        if isinstance(region, OneOf):
            points = (self.coordinate(value) for value in region.values)
            return [(point, point) for point in points]
        if isinstance(region, Interval) and not self.salt:
            return [(self.coordinate(region.low), self.coordinate(region.high))]
        return [EVERYTHING]


@dataclass(frozen=True, slots=True)
class ContentSpace:
    dimensions: tuple[Dimension, ...]

    def __post_init__(self) -> None:
        if not self.dimensions:
            raise UsageError("a content space has one dimension or more")

    def point(self, content: Mapping[str, Value]) -> Point:
        """Where a publication is."""
        return tuple(
            dimension.coordinate(content[dimension.attribute])
            if dimension.attribute in content
            else 0.0
            for dimension in self.dimensions
        )

    def part(self, filter: Filter) -> tuple[tuple[Span, ...], ...]:
        """What a filter meets: for each dimension, one of these spans (D1)."""
        return tuple(
            dimension.spans(filter.constraints[dimension.attribute])
            if dimension.attribute in filter.constraints
            else (EVERYTHING,)
            for dimension in self.dimensions
        )
