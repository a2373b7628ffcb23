"""Units of allocation: what is assigned to a broker as a whole.

Paper    Cheung, thesis 6.2: subscriptions in the pool, and clusters of them.
Words    subscription unit -> AllocationUnit; clustering -> merged.
Departs  1. All subscriptions of one client are a unit from the start: a client has one broker.  It
            is sent one copy of a publication, whatever number of its filters match.
Tested   tests/policies/allocation/test_one_to_many.py.

U1  The bandwidth of a cluster is the sum of its parts': each receiver is sent its own copy.  Its
    profile is the OR of theirs: the broker receives a publication once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from godwit.policies.allocation.packed_profiles import PackedProfile, PublisherTable, union


@dataclass(frozen=True, slots=True, eq=False)
class AllocationUnit:
    number: int
    """Of equals the lower number is first; clusters are numbered as they are made."""

    profile: PackedProfile
    bandwidth_bytes_s: float
    rate_per_s: float
    """Of its profile."""

    subscriptions: int
    parts: tuple[AllocationUnit, ...] = ()
    subscriber: int = -1
    """Which subscriber it is, if it is one."""

    below: str = ""
    """The broker that it stands for in the layer above, if it is one."""

    def leaves(self) -> Iterator[AllocationUnit]:
        """The subscribers and brokers that it consists of."""
        stack = [self]
        while stack:
            unit = stack.pop()
            if unit.parts:
                stack.extend(reversed(unit.parts))
            else:
                yield unit


class UnitFactory:
    """Makes units with consecutive numbers."""

    def __init__(self, table: PublisherTable) -> None:
        self._table = table
        self._numbers = count()

    def subscriber(
        self, index: int, profile: PackedProfile, subscriptions: int = 1
    ) -> AllocationUnit:
        return AllocationUnit(
            next(self._numbers),
            profile,
            self._table.bandwidth_bytes_s(profile),
            self._table.rate_per_s(profile),
            subscriptions,
            subscriber=index,
        )

    def below(self, broker: str, profile: PackedProfile) -> AllocationUnit:
        """What a broker of the layer below needs: one copy of all that it serves."""
        return AllocationUnit(
            next(self._numbers),
            profile,
            self._table.bandwidth_bytes_s(profile),
            self._table.rate_per_s(profile),
            1,
            below=broker,
        )

    def merged(
        self, parts: Sequence[AllocationUnit], profile: PackedProfile | None = None
    ) -> AllocationUnit:
        """A cluster (U1).  `profile` is the OR, if the caller has it already."""
        if profile is None:
            profile = union(part.profile for part in parts)
        return AllocationUnit(
            next(self._numbers),
            profile,
            sum(part.bandwidth_bytes_s for part in parts),
            self._table.rate_per_s(profile),
            sum(part.subscriptions for part in parts),
            parts=tuple(parts),
        )
