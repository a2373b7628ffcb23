"""Loads of all subscribers, counted by publisher and by rate, and the lower bounds that follow.

The bounds are those of policies/allocation/allocation_bounds.py.  They need of each publisher only
how many bytes the subscribers with each number of its publications are sent, and how many
subscriptions have which rate, so Spark counts these and sends no subscriber to the driver.

Departs  1. Rates are rounded down to steps of 1% for the bound by matching: a lower rate gives a
            bound that is lower or equal.
Tested   tests/policies/large_allocation/test_load_histogram.py: against the bounds of a problem.

H1  Entries with the same publisher and number of publications add up: the bounds do not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, floor, inf, log

import numpy as np

from godwit.policies.allocation.allocation_bounds import AllocationBounds, share_filled
from godwit.policies.allocation.capacity import BrokerCapacity
from godwit.policies.allocation.closeness import Floats
from godwit.policies.allocation.packed_profiles import PackedProfile, PublisherTable

#: Width of a step of rates.
RATE_STEP = 0.01
#: Keys of entries that are not about a publisher.
BY_RATE, TOTAL, SUBSCRIBERS, EXPECTED = -1, -2, -3, -4


@dataclass(slots=True)
class LoadHistogram:
    entries: dict[tuple[int, float], float] = field(default_factory=dict)
    """(publisher, publications) -> bytes/s to subscribers with so many of them;
    (BY_RATE, rate) -> subscriptions."""

    def add(
        self, profile: PackedProfile, table: PublisherTable, subscribers: int, subscriptions: int
    ) -> None:
        """Subscribers with the same profile."""
        sent = subscribers * table.bandwidth_bytes_s(profile)
        for p, count in profile.counts.items():
            self.add_entry(p, count, sent)
        rate = table.plain.rate_per_s(profile)
        step = exp(floor(log(rate) / RATE_STEP) * RATE_STEP) if rate > 0 else 0.0
        self.add_entry(BY_RATE, min(step, rate), subscriptions)
        self.add_entry(TOTAL, 0.0, sent)
        self.add_entry(SUBSCRIBERS, 0.0, subscribers)
        self.add_entry(EXPECTED, 0.0, subscribers * table.plain.bandwidth_bytes_s(profile))

    def add_entry(self, publisher: int, level: float, weight: float) -> None:
        key = (publisher, level)
        self.entries[key] = self.entries.get(key, 0.0) + weight

    @property
    def total_bytes_s(self) -> float:
        return self.entries.get((TOTAL, 0.0), 0.0)

    @property
    def subscribers(self) -> int:
        return int(self.entries.get((SUBSCRIBERS, 0.0), 0.0))

    @property
    def subscriptions(self) -> int:
        return int(sum(weight for (key, _), weight in self.entries.items() if key == BY_RATE))

    def bounds(self, brokers: Sequence[BrokerCapacity], table: PublisherTable) -> AllocationBounds:
        """`brokers` are in their order, the most capable first."""
        capacities = np.cumsum([broker.output_bandwidth_bytes_s for broker in brokers])
        links_per_s = links_bytes_s = 0.0
        for p, levels in self._by_publisher().items():
            shares = _extra_shares(levels, capacities, table.plain, p)
            links_per_s += table.rates_per_s[p] * shares
            links_bytes_s += table.bandwidths_bytes_s[p] * shares
        expected = self.entries.get((EXPECTED, 0.0), 0.0)
        needed = max(self.total_bytes_s, expected + links_bytes_s)
        by_bandwidth = 1 + int(np.searchsorted(capacities, needed, "right"))
        if not self.subscribers:
            by_bandwidth = 1
        by_matching = self._by_matching(brokers)
        most = max(1, by_bandwidth, by_matching)
        kind = "neither" if most == 1 else "bandwidth" if by_bandwidth == most else "matching"
        filled = share_filled(needed, capacities, most)
        return AllocationBounds(most, sum(table.rates_per_s) + links_per_s, kind, filled)

    def _by_publisher(self) -> Mapping[int, list[tuple[int, float]]]:
        found: dict[int, list[tuple[int, float]]] = {}
        for (p, level), weight in self.entries.items():
            if p >= 0:
                found.setdefault(p, []).append((int(level), weight))
        return found

    def _by_matching(self, brokers: Sequence[BrokerCapacity]) -> int:
        most, above = 0, 0.0
        for rate, subscriptions in self._by_rate():
            above += subscriptions
            rooms = sorted((_room(broker, rate) for broker in brokers), reverse=True)
            most = max(most, 1 + int(np.searchsorted(np.cumsum(rooms), above, "left")))
        return most

    def _by_rate(self) -> Iterator[tuple[float, float]]:
        """The highest rate first."""
        pairs = [(rate, n) for (key, rate), n in self.entries.items() if key == BY_RATE]
        yield from sorted(pairs, reverse=True)


def _extra_shares(
    levels: list[tuple[int, float]], capacities: Floats, table: PublisherTable, p: int
) -> float:
    """r_2 + r_3 + ..., as shares of the publisher's rate."""
    levels.sort(reverse=True)
    up_to = np.cumsum([weight for _, weight in levels])
    first = np.searchsorted(up_to, capacities, "left")
    return sum(table.share(p, levels[place][0]) for place in first.tolist() if place < len(levels))


def _room(broker: BrokerCapacity, rate_per_s: float) -> float:
    """The most subscriptions with which the broker matches `rate_per_s`."""
    if rate_per_s <= 0 or broker.matching.slope_s <= 0:
        return inf if broker.rate_max(1) >= rate_per_s else 0.0
    room = (1 / rate_per_s - broker.matching.intercept_s) / broker.matching.slope_s
    return max(0.0, floor(room * (1 + 1e-12)))
