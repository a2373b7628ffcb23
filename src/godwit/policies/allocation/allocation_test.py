"""The allocation test: whether BIN PACKING still succeeds after a merge.

Paper    Cheung, thesis 6.2.3, step 2.
Claim    `allows` is what BIN PACKING of the changed pool says.
Departs  1. BIN PACKING runs only if a bound leaves the answer open.

Let w and n be the bandwidth and the subscriptions of a unit, and `whole` the rate of all profiles.
A broker refuses the unit only if it is full (load + w >= C) or crowded (its subscriptions and n are
more than it can match at the rate `whole`).

    L brokers can be full only if their C - w, the smallest first, add up to what is placed before
    the unit; likewise for crowded ones.  If fewer brokers can be full or crowded than there are,
    some broker accepts.

    An empty broker that could serve the unit alone accepts it.  If fewer units are placed before it
    than there are such brokers, one of these is empty.

With all of the pool as what is placed before, the first argument holds for all units up to some
bandwidth and number of subscriptions: the light ones.  The pool's sums do not change by merges, so
only the heavy units, few in number, are checked one by one.

Tested   tests/policies/allocation/test_allocation_test.py: against BIN PACKING on random pools.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from godwit.policies.allocation.bin_packing import bin_packing
from godwit.policies.allocation.capacity import EQUAL_WITHIN, BrokerCapacity
from godwit.policies.allocation.closeness import Floats
from godwit.policies.allocation.first_fit import Packed
from godwit.policies.allocation.packed_profiles import PublisherTable, union
from godwit.policies.allocation.units import AllocationUnit

#: Sums are taken as larger by this share, so that rounding cannot make a bound too strong.
ROUNDING = 1e-6
HALVINGS = 40


class AllocationTest:
    def __init__(
        self,
        units: Iterable[AllocationUnit],
        brokers: Sequence[BrokerCapacity],
        table: PublisherTable,
    ) -> None:
        self.pool = {unit.number: unit for unit in units}
        self._brokers = brokers
        self._table = table
        everything = union(unit.profile for unit in self.pool.values())
        self._whole_per_s = table.rate_max_per_s(everything)
        self._bandwidths: Floats = np.sort([broker.below_bytes_s for broker in brokers])
        self._rooms: Floats = np.sort([_room(broker, self._whole_per_s) for broker in brokers])
        total = sum(unit.bandwidth_bytes_s for unit in self.pool.values())
        self._total_bytes_s = total * (1 + ROUNDING)
        self._subscriptions = sum(unit.subscriptions for unit in self.pool.values())
        self._light_bytes_s, self._light_n = self._limits()
        self._heavy: list[tuple[float, int, int]] = []
        """(-bandwidth, number, subscriptions), in the order of BIN PACKING."""

        for unit in self.pool.values():
            self._note(unit)
        self.packings = 0

    # -- the light units -----------------------------------------------------------------------

    def _limits(self) -> tuple[float, float]:
        """Units up to this bandwidth and this number of subscriptions always find room."""
        spare = len(self._brokers) - 1 - self._full(0.0, self._total_bytes_s)
        light_n = _largest(
            lambda n: self._crowded(n, self._subscriptions) <= spare // 2, self._subscriptions
        )
        crowded = self._crowded(light_n, self._subscriptions)
        spare = len(self._brokers) - 1 - crowded
        light_bytes_s = _largest(
            lambda w: self._full(w, self._total_bytes_s) <= spare, self._total_bytes_s
        )
        return light_bytes_s, light_n

    def _full(self, bandwidth_bytes_s: float, placed_bytes_s: float) -> int:
        """How many brokers can refuse this bandwidth if so much is placed."""
        return _reachable(self._bandwidths - bandwidth_bytes_s, placed_bytes_s)

    def _crowded(self, n: float, placed: float) -> int:
        # A broker is crowded from room - n + 1 subscriptions on.
        missing = np.where(self._rooms < n, 0.0, self._rooms - n + 1)
        return _reachable(missing, placed)

    def _is_heavy(self, unit: AllocationUnit) -> bool:
        return unit.bandwidth_bytes_s > self._light_bytes_s or unit.subscriptions > self._light_n

    def _note(self, unit: AllocationUnit) -> None:
        if self._is_heavy(unit):
            insort(self._heavy, (-unit.bandwidth_bytes_s, unit.number, unit.subscriptions))

    # -- the test ------------------------------------------------------------------------------

    def allows(self, removed: Sequence[AllocationUnit], added: AllocationUnit) -> bool:
        """Whether BIN PACKING succeeds with `added` instead of `removed`."""
        if not self._has_a_broker(added):
            return False
        if self._is_certain(removed, added):
            return True
        gone = {unit.number for unit in removed}
        units = [unit for number, unit in self.pool.items() if number not in gone]
        return self._pack([*units, added]).is_complete

    def _has_a_broker(self, unit: AllocationUnit) -> bool:
        """Whether any broker could serve it alone."""
        return any(
            broker.can_send(unit.bandwidth_bytes_s)
            and broker.can_match(unit.rate_per_s, unit.subscriptions)
            for broker in self._brokers
        )

    def _is_certain(self, removed: Sequence[AllocationUnit], added: AllocationUnit) -> bool:
        heavy = self._heavy
        if self._is_heavy(added):
            entry = (-added.bandwidth_bytes_s, added.number, added.subscriptions)
            heavy = heavy.copy()
            insort(heavy, entry)
        gone = {unit.number for unit in removed if self._is_heavy(unit)}
        placed_bytes_s, placed_n, rank = 0.0, 0, 0
        for negative, number, n in heavy:
            if number in gone:
                continue
            if -negative <= self._light_bytes_s:  # Lighter units may be placed before it.
                placed_bytes_s, placed_n = self._total_bytes_s, self._subscriptions
                rank = len(self.pool)
            if not self._accepted(-negative, n, placed_bytes_s, placed_n, rank):
                return False
            placed_bytes_s -= negative
            placed_n += n
            rank += 1
        return True

    def _accepted(self, w: float, n: int, placed_bytes_s: float, placed_n: int, rank: int) -> bool:
        brokers = len(self._brokers)
        full_at_once = int(np.searchsorted(self._bandwidths, w, "right"))
        crowded_at_once = int(np.searchsorted(self._rooms, n, "left"))
        if rank < brokers - full_at_once - crowded_at_once:
            return True
        full = self._full(w, placed_bytes_s * (1 + ROUNDING))
        return full + self._crowded(n, placed_n) < brokers

    # -- the pool ------------------------------------------------------------------------------

    def commit(self, removed: Iterable[AllocationUnit], added: AllocationUnit) -> None:
        for unit in removed:
            del self.pool[unit.number]
            if self._is_heavy(unit):
                place = bisect_left(
                    self._heavy, (-unit.bandwidth_bytes_s, unit.number, unit.subscriptions)
                )
                del self._heavy[place]
        self.pool[added.number] = added
        self._note(added)

    def pack(self) -> Packed:
        """BIN PACKING of the pool."""
        return self._pack(self.pool.values())

    def _pack(self, units: Iterable[AllocationUnit]) -> Packed:
        self.packings += 1
        return bin_packing(units, self._brokers, self._table, self._whole_per_s)


def _room(broker: BrokerCapacity, rate_per_s: float) -> float:
    """The most subscriptions with which a broker surely matches at this rate."""
    if rate_per_s <= 0:
        return float("inf")
    delay_s = (1 - EQUAL_WITHIN) / rate_per_s - broker.matching.intercept_s
    if broker.matching.slope_s <= 0:
        return float("inf") if delay_s >= 0 else -1.0
    return max(-1.0, float(np.floor(delay_s / broker.matching.slope_s * (1 - ROUNDING))))


def _reachable(missing: Floats, placed: float) -> int:
    """How many entries, the smallest first, add up to at most `placed`."""
    sums = np.cumsum(np.sort(np.maximum(missing, 0.0)))
    return int(np.searchsorted(sums, placed, "right"))


def _largest(holds: Callable[[float], bool], most: float) -> float:
    """The largest value up to `most` for which `holds`, which is monotone; -1 for none."""
    if holds(most):
        return most
    if not holds(0.0):
        return -1.0
    low, high = 0.0, most
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
