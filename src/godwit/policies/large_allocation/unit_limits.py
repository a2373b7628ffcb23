"""How large a unit may become before the last step, and how many units a GIF is split into.

CRAM merges as long as BIN PACKING of all units succeeds.  On Spark no task sees all units, so a
merge is limited by a share of one broker: small enough that the last step, which sees all, can
still pack well, and large enough that few units are left for it.

The broker is the smallest that the load needs, by bandwidth, the most capable first; its matching
delay is the longest of those.  A unit takes at most the share of its bandwidth, and of the
subscriptions that it can match at the unit's rate.

Tested   tests/policies/large_allocation/test_unit_limits.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, inf

import numpy as np

from godwit.errors import UsageError
from godwit.policies.allocation.capacity import EQUAL_WITHIN, BrokerCapacity
from godwit.profile.matching_delay import MatchingDelay


@dataclass(frozen=True, slots=True)
class UnitLimits:
    share: float
    bandwidth_bytes_s: float
    """The most that a unit sends."""

    matching: MatchingDelay
    silent: float
    """The most subscriptions of a unit that receives nothing: the share of an even number."""

    @classmethod
    def of(
        cls,
        brokers: Sequence[BrokerCapacity],
        total_bytes_s: float,
        subscriptions: int,
        share: float,
    ) -> UnitLimits:
        """`brokers` are in their order, the most capable first."""
        if not 0 < share <= 1:
            raise UsageError(f"share is {share}; it must be above 0 and at most 1")
        capacities = np.cumsum([broker.output_bandwidth_bytes_s for broker in brokers])
        needed = 1 + int(np.searchsorted(capacities, total_bytes_s, "right"))
        used = brokers[:needed]
        return cls(
            share,
            share * used[-1].output_bandwidth_bytes_s,
            MatchingDelay(
                max(broker.matching.slope_s for broker in used),
                max(broker.matching.intercept_s for broker in used),
            ),
            share * subscriptions / len(used),
        )

    def allows(self, bandwidth_bytes_s: float, rate_per_s: float, subscriptions: int) -> bool:
        if bandwidth_bytes_s > self.bandwidth_bytes_s:
            return False
        room = self.matching.rate_max(ceil(subscriptions / self.share))
        return rate_per_s <= room * (1 + EQUAL_WITHIN)

    def parts(
        self, bandwidth_bytes_s: float, rate_per_s: float, subscribers: int, subscriptions: int
    ) -> int:
        """How many units a GIF becomes; bandwidth and rate are those of one subscriber."""
        by_bandwidth = self.bandwidth_bytes_s / bandwidth_bytes_s if bandwidth_bytes_s else inf
        each = subscriptions / subscribers
        most = max(1, floor(min(by_bandwidth, self._most(rate_per_s) / each, subscribers)))
        return ceil(subscribers / most)

    def _most(self, rate_per_s: float) -> float:
        """Subscriptions of a unit with this rate."""
        if rate_per_s <= 0:
            return self.silent
        if self.matching.slope_s <= 0:
            return inf
        room = (1 / rate_per_s - self.matching.intercept_s) / self.matching.slope_s
        return self.share * room
