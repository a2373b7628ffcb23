"""The capacity test: whether a broker has room for a unit.

Paper    Cheung, thesis 6.2.1: "its remaining available output bandwidth is greater than 0 and its
         incoming publication rate is less than or equal to its maximum matching rate".
Words    maximum matching rate -> rate_max(n) = 1 / d(n), n the subscriptions of the broker.
Departs  1. The OR of a broker's profiles is computed only if the rate might be too high by the sum
            of its units' rates and by the rate of all profiles together: the same answer, in less
            time.
Tested   tests/policies/allocation/test_capacity.py: against the definition.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from godwit.errors import UsageError
from godwit.policies.allocation.packed_profiles import PackedProfile, PublisherTable, Words, union
from godwit.policies.allocation.units import AllocationUnit
from godwit.profile.matching_delay import MatchingDelay

#: Sums that differ by less than this share count as equal: the order of a sum changes it.
EQUAL_WITHIN = 1e-9
#: From here on a number is shown with an exponent.
MANY = 1e15


class UnallocatableError(UsageError):
    """The brokers cannot carry the load.  The message says what is missing."""


@dataclass(frozen=True, slots=True)
class BrokerCapacity:
    id: str
    output_bandwidth_bytes_s: float
    matching: MatchingDelay

    def rate_max(self, subscriptions: int) -> float:
        return self.matching.rate_max(subscriptions)

    def can_send(self, bytes_s: float) -> bool:
        """Whether bandwidth remains."""
        return bytes_s < self.below_bytes_s

    @property
    def below_bytes_s(self) -> float:
        return self.output_bandwidth_bytes_s * (1 - EQUAL_WITHIN)

    def can_match(self, rate_per_s: float, subscriptions: int) -> bool:
        return rate_per_s <= self.rate_max(subscriptions) * (1 + EQUAL_WITHIN)

    @property
    def order(self) -> tuple[float, str]:
        """The most capable first; of equals the lower id."""
        return (-self.output_bandwidth_bytes_s, self.id)


class BrokerFill:
    """A broker and the units on it."""

    __slots__ = (
        "_blocks", "_counts", "_pending", "_rate_per_s", "_table", "_whole_per_s",
        "bandwidth_bytes_s", "broker", "rate_sum_per_s", "subscriptions", "units",
    )  # fmt: skip

    def __init__(
        self,
        broker: BrokerCapacity,
        table: PublisherTable,
        units: Iterable[AllocationUnit] = (),
        whole_per_s: float = float("inf"),
    ) -> None:
        self.broker = broker
        self._table = table
        self._whole_per_s = whole_per_s
        self.units: list[AllocationUnit] = []
        self.bandwidth_bytes_s = 0.0
        self.subscriptions = 0
        self.rate_sum_per_s = 0.0
        self._blocks: dict[int, Words] = {}
        self._counts: dict[int, int] = {}
        self._rate_per_s = 0.0
        self._pending: list[AllocationUnit] = []
        for unit in units:
            self.add(unit)

    def add(self, unit: AllocationUnit) -> None:
        self.units.append(unit)
        self.bandwidth_bytes_s += unit.bandwidth_bytes_s
        self.subscriptions += unit.subscriptions
        self.rate_sum_per_s += unit.rate_per_s
        self._pending.append(unit)

    def fits(self, unit: AllocationUnit) -> bool:
        return self.has_bandwidth(unit) and self.has_rate(unit)

    def has_bandwidth(self, unit: AllocationUnit) -> bool:
        return self.broker.can_send(self.bandwidth_bytes_s + unit.bandwidth_bytes_s)

    def has_rate(self, unit: AllocationUnit) -> bool:
        n = self.subscriptions + unit.subscriptions
        # The rate of an OR is at most the sum of the rates, and at most that of everything.
        if self.broker.can_match(min(self.rate_sum_per_s + unit.rate_per_s, self._whole_per_s), n):
            return True
        return self.broker.can_match(self.added_per_s(unit) + self.rate_per_s, n)

    def added_per_s(self, unit: AllocationUnit) -> float:
        """What it would receive in addition for this unit."""
        self._fold()
        added = 0.0
        for p, words in unit.profile.blocks.items():
            known = self._blocks.get(p)
            before = self._counts.get(p, 0)
            after = (
                unit.profile.counts[p]
                if known is None
                else int(np.bitwise_count(known | words).sum())
            )
            share = self._table.share(p, after) - self._table.share(p, before)
            added += self._table.rates_per_s[p] * share
        return added

    def _fold(self) -> None:
        if not self._pending:
            return
        for unit in self._pending:
            for p, words in unit.profile.blocks.items():
                known = self._blocks.get(p)
                if known is None:
                    self._blocks[p] = words.copy()
                else:
                    np.bitwise_or(known, words, out=known)
                self._counts.pop(p, None)
        self._pending.clear()
        for p, words in self._blocks.items():
            if p not in self._counts:
                self._counts[p] = int(np.bitwise_count(words).sum())
        self._rate_per_s = sum(
            self._table.rates_per_s[p] * self._table.share(p, n) for p, n in self._counts.items()
        )

    @property
    def profile(self) -> PackedProfile:
        """The OR of everything it serves."""
        self._fold()
        blocks = {p: words.copy() for p, words in self._blocks.items()}
        return PackedProfile(blocks, dict(self._counts))

    @property
    def rate_per_s(self) -> float:
        """What it receives."""
        self._fold()
        return self._rate_per_s

    @property
    def is_within_capacity(self) -> bool:
        """The test for all its units together."""
        if not self.broker.can_send(self.bandwidth_bytes_s):
            return False
        return self.broker.can_match(self.rate_per_s, self.subscriptions)

    @property
    def utilisation(self) -> float:
        capacity = self.broker.output_bandwidth_bytes_s
        return self.bandwidth_bytes_s / capacity if capacity else 0.0


def fits_all(
    broker: BrokerCapacity, table: PublisherTable, units: Iterable[AllocationUnit]
) -> bool:
    """Whether one broker can serve all of these units."""
    return BrokerFill(broker, table, units).is_within_capacity


def _named(unit: AllocationUnit) -> str:
    if unit.below:
        return f"broker {unit.below!r}"
    n = unit.subscriptions
    return "a subscription" if n == 1 else f"a unit of {n:,} subscriptions"


def _amount(number: float) -> str:
    return f"{number:,.0f}" if number < MANY else f"{number:.3g}"


def _counted(n: int) -> str:
    return "1 subscription" if n == 1 else f"{n:,} subscriptions"


def explain_no_room(
    unit: AllocationUnit,
    fills: Iterable[BrokerFill],
    units: Iterable[AllocationUnit],
    table: PublisherTable,
) -> str:
    """A sentence that says what is missing for `unit`."""
    fills, units = list(fills), list(units)
    if not fills:
        return "no broker is left for the load; add brokers"
    needed = sum(each.bandwidth_bytes_s for each in units)
    total = sum(fill.broker.output_bandwidth_bytes_s for fill in fills)
    count = f"{len(fills)} broker{'s' if len(fills) > 1 else ''}"
    if not total:
        return (
            f"the load needs {_amount(needed)} bytes/s of output bandwidth and {count} "
            f"can send 0: brokers with output bandwidth are missing"
        )
    if needed >= total:
        return (
            f"the load needs {_amount(needed)} bytes/s of output bandwidth and {count} "
            f"can send {_amount(total)}: {_amount(needed - total)} bytes/s are missing"
        )
    with_bandwidth = [fill for fill in fills if fill.has_bandwidth(unit)]
    if not with_bandwidth:
        left = max(fill.broker.output_bandwidth_bytes_s - fill.bandwidth_bytes_s for fill in fills)
        return (
            f"{_named(unit)} needs {_amount(unit.bandwidth_bytes_s)} "
            f"bytes/s of output bandwidth at one broker, and the most that is left at any of "
            f"{count} is {_amount(left)}: {_amount(unit.bandwidth_bytes_s - left)} bytes/s "
            f"are missing"
        )

    def rate_with(fill: BrokerFill) -> float:
        return table.rate_per_s(union([fill.profile, unit.profile]))

    best = min(
        with_bandwidth,
        key=lambda fill: (
            rate_with(fill) / fill.broker.rate_max(fill.subscriptions + unit.subscriptions)
        ),
    )
    rate, n = rate_with(best), best.subscriptions + unit.subscriptions
    return (
        f"broker {best.broker.id!r} would receive {rate:,.2f} publications/s with {_counted(n)} "
        f"and can match {best.broker.rate_max(n):,.2f}/s: the matching rate 1/d(n) "
        f"is too low there, and no other broker has room"
    )
