"""The allocation test: whether BIN PACKING still succeeds after a merge.

Paper    Cheung, thesis 6.2.3, step 2.
Claim    `allows` is what BIN PACKING of the changed pool says.
Departs  1. BIN PACKING runs only if a bound leaves the answer open.

Let w, n and r be the bandwidth, the subscriptions and the rate of a unit, and `whole` the rate of
all profiles.  A broker refuses the unit only if it is full (load + w >= C) or crowded: it cannot
match N + n subscriptions at the rate `whole`, nor at R + r, the sum of its units' rates.

    L brokers can be full only if their C - w, the smallest first, add up to what is placed before
    the unit; likewise for crowded ones.  If fewer brokers can be full or crowded than there are,
    some broker accepts.

    A crowded broker has x y > 1, with x = m (N + n) + b and y = R + r, so x + t^2 y > 2 t for every
    t.  The sums of N and of R over all brokers are at most those of the pool, which limits the
    number of crowded brokers.  This is the better limit if there are many publishers: no broker
    receives from all of them.

    An empty broker that could serve the unit alone accepts it.  If fewer units are placed before it
    than there are such brokers, one of these is empty.

With all of the pool as what is placed before, the first argument holds for all units up to some
bandwidth, number of subscriptions and rate: the light ones.  The pool's sums do not grow by merges,
so only the heavy units, few in number, are checked one by one.

Tested   tests/policies/allocation/test_allocation_test.py: against BIN PACKING on random pools.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from godwit.policies.allocation.bin_packing import bin_packing
from godwit.policies.allocation.capacity import EQUAL_WITHIN, BrokerCapacity
from godwit.policies.allocation.closeness import Floats
from godwit.policies.allocation.first_fit import Packed
from godwit.policies.allocation.packed_profiles import PublisherTable, union
from godwit.policies.allocation.units import AllocationUnit
from godwit.profile.matching_delay import DELAY_MIN_S

#: Sums are taken as larger by this share, so that rounding cannot make a bound too strong.
ROUNDING = 1e-6
HALVINGS = 40
#: Values of t, relative to the one that is best for units without subscriptions and rate.
FACTORS: Floats = 2.0 ** np.arange(-5.0, 3.0)


@dataclass(frozen=True, slots=True)
class _Light:
    """Units up to all three always find room."""

    bandwidth_bytes_s: float
    subscriptions: float
    rate_per_s: float


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
        rates = sum(unit.rate_per_s for unit in self.pool.values())
        self._rates_per_s = rates * (1 + ROUNDING)
        self._slope_s = max(0.0, *(broker.matching.slope_s for broker in brokers), 0.0)
        self._intercept_s = DELAY_MIN_S + max(
            0.0, *(broker.matching.intercept_s for broker in brokers), 0.0
        )
        self._light = self._limits()
        self._heavy: list[tuple[float, int, int, float]] = []
        """(-bandwidth, number, subscriptions, rate), in the order of BIN PACKING."""

        for unit in self.pool.values():
            self._note(unit)
        self.packings = 0

    # -- the light units -----------------------------------------------------------------------

    def _limits(self) -> _Light:
        """Units up to these sizes always find room."""
        spare = len(self._brokers) - 1 - self._full(0.0, self._total_bytes_s)

        def crowded(n: float, rate_per_s: float) -> int:
            return self._crowded(n, rate_per_s, self._subscriptions, self._rates_per_s)

        # Without a limit of the rate if that is possible: then only `whole` counts.
        light_n, light_per_s = (
            _largest(lambda n: crowded(n, inf) <= spare // 2, self._subscriptions),
            inf,
        )
        if light_n < self._subscriptions:
            share = _largest(
                lambda share: (
                    crowded(share * self._subscriptions, share * self._rates_per_s) <= spare // 2
                ),
                1.0,
            )
            if share * self._subscriptions > light_n:
                light_n, light_per_s = share * self._subscriptions, share * self._rates_per_s
        spare = len(self._brokers) - 1 - crowded(light_n, light_per_s)
        light_bytes_s = _largest(
            lambda w: self._full(w, self._total_bytes_s) <= spare, self._total_bytes_s
        )
        return _Light(light_bytes_s, light_n, light_per_s)

    def _full(self, bandwidth_bytes_s: float, placed_bytes_s: float) -> int:
        """How many brokers can refuse this bandwidth if so much is placed."""
        return _reachable(self._bandwidths - bandwidth_bytes_s, placed_bytes_s)

    def _crowded(self, n: float, rate_per_s: float, placed: float, placed_per_s: float) -> int:
        """How many brokers can be crowded for such a unit if so much is placed."""
        # A broker is crowded from room - n + 1 subscriptions on.
        missing = np.where(self._rooms < n, 0.0, self._rooms - n + 1)
        by_whole = _reachable(missing, placed)
        return min(by_whole, self._crowded_by_sums(n, rate_per_s, placed, placed_per_s))

    def _crowded_by_sums(
        self, n: float, rate_per_s: float, placed: float, placed_per_s: float
    ) -> int:
        """Count k: k (2 t - b - m n - t^2 r) < m N + t^2 R for the best t."""
        brokers, slope_s = len(self._brokers), self._slope_s
        if rate_per_s == inf or placed_per_s <= 0:
            return brokers
        base_s = self._intercept_s + slope_s * n
        t = FACTORS * sqrt((base_s * brokers + slope_s * placed) / placed_per_s)
        each = 2 * t - base_s - t * t * rate_per_s
        useful = each > 0
        if not useful.any():
            return brokers
        most = (slope_s * placed + t * t * placed_per_s)[useful] / each[useful]
        return min(brokers, int(most.min() * (1 + ROUNDING)))

    def _is_heavy(self, unit: AllocationUnit) -> bool:
        light = self._light
        return (
            unit.bandwidth_bytes_s > light.bandwidth_bytes_s
            or unit.subscriptions > light.subscriptions
            or unit.rate_per_s > light.rate_per_s
        )

    def _note(self, unit: AllocationUnit) -> None:
        if self._is_heavy(unit):
            insort(self._heavy, _entry(unit))

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
            heavy = heavy.copy()
            insort(heavy, _entry(added))
        gone = {unit.number for unit in removed if self._is_heavy(unit)}
        placed_bytes_s, placed_n, placed_per_s, rank = 0.0, 0, 0.0, 0
        for negative, number, n, per_s in heavy:
            if number in gone:
                continue
            if -negative <= self._light.bandwidth_bytes_s:  # Lighter units may be placed before.
                placed_bytes_s, placed_n = self._total_bytes_s, self._subscriptions
                placed_per_s, rank = self._rates_per_s, len(self.pool)
            w, rounded = -negative, placed_per_s * (1 + ROUNDING)
            if not self._has_empty(w, n, rank) and (
                self._full(w, placed_bytes_s * (1 + ROUNDING))
                + self._crowded(n, per_s, placed_n, rounded)
                >= len(self._brokers)
            ):
                return False
            placed_bytes_s -= negative
            placed_n += n
            placed_per_s += per_s
            rank += 1
        return True

    def _has_empty(self, w: float, n: int, rank: int) -> bool:
        """Whether a broker that could serve such a unit is empty if `rank` are placed."""
        full_at_once = int(np.searchsorted(self._bandwidths, w, "right"))
        crowded_at_once = int(np.searchsorted(self._rooms, n, "left"))
        return rank < len(self._brokers) - full_at_once - crowded_at_once

    # -- the pool ------------------------------------------------------------------------------

    def commit(self, removed: Iterable[AllocationUnit], added: AllocationUnit) -> None:
        for unit in removed:
            del self.pool[unit.number]
            if self._is_heavy(unit):
                del self._heavy[bisect_left(self._heavy, _entry(unit))]
        self.pool[added.number] = added
        self._note(added)

    def pack(self) -> Packed:
        """BIN PACKING of the pool."""
        return self._pack(self.pool.values())

    def _pack(self, units: Iterable[AllocationUnit]) -> Packed:
        self.packings += 1
        return bin_packing(units, self._brokers, self._table, self._whole_per_s)


def _entry(unit: AllocationUnit) -> tuple[float, int, int, float]:
    return (-unit.bandwidth_bytes_s, unit.number, unit.subscriptions, unit.rate_per_s)


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
