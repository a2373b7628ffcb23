"""Lower bounds: no plan needs fewer brokers, and none causes less traffic.

The best plan is NP-hard to find (bin packing is a special case).  A bound limits the distance of a
plan from it.  C_1 >= C_2 >= ... are the output bandwidths of the brokers.

spread     A set of subscribers that are sent W bytes/s in all is spread over at least `j` brokers
           if C_1 + ... + C_(j-1) <= W: each receiver is sent its own copy by its broker, and any
           j - 1 brokers send less than these together.

links      Of publisher p, let r be the rate that a subscriber receives.  Take its subscribers by r,
           descending.  If the first of them up to r_j are spread over j brokers, j brokers receive
           p at r_j or more: the input of a broker is at least that of each subscriber there.  So
           the brokers receive p at r_1 + r_2 + ... or more in all; the broker of p receives
           everything instead, and each of the others over a link that some broker sends on.

brokers    1. The bytes to subscribers and the bytes on links (by the same argument, in bytes) have
              room in the brokers that are used: fewest k with C_1 + ... + C_k > their sum.
           2. A broker with a subscriber of rate r receives at least r, so it has at most n
              subscriptions, n the largest with r <= 1 / d(n).  The subscribers of rate r or more
              need brokers that have room for them by this number; for each r.

traffic    The input of all brokers: the rate of each publisher, and r_2 + r_3 + ... of each.

A broker of rate r_j may be counted for several publishers: their traffic adds up.  Loads are those
of the capacity test; where it compensates short vectors, rates for 2 and the bytes that 1 adds up
are without compensation, which never is above: the finished tree is tested with what is expected.
Tested   tests/policies/allocation/test_allocation_bounds.py: against the best of all plans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from godwit.policies.allocation.capacity import BrokerCapacity
from godwit.policies.allocation.expected_traffic import Floats
from godwit.policies.allocation.gathered_reading import AllocationProblem

#: Thresholds of rate that are tried for the second bound on brokers.
THRESHOLDS_MAX = 64


@dataclass(frozen=True, slots=True)
class AllocationBounds:
    brokers: int
    traffic_per_s: float
    """Publications per second that arrive at brokers, in all."""

    kind: str
    """What the number of brokers follows from: bandwidth, matching, or neither."""

    filled: float = 0.0
    """The share of the bandwidth of so many brokers, the largest, that the load needs at least."""


def allocation_bounds(problem: AllocationProblem) -> AllocationBounds:
    table, plain = problem.table, problem.table.plain
    capacities = np.cumsum([broker.output_bandwidth_bytes_s for broker in problem.brokers])
    sent = np.array([table.bandwidth_bytes_s(s.profile) for s in problem.subscribers])
    links_per_s = links_bytes_s = 0.0
    receivers: dict[int, list[tuple[float, float]]] = {}
    for subscriber, weight in zip(problem.subscribers, sent.tolist(), strict=True):
        for p, count in subscriber.profile.counts.items():
            receivers.setdefault(p, []).append((plain.share(p, count), weight))
    for p, pairs in receivers.items():
        shares = _extra_shares(pairs, capacities)
        links_per_s += table.rates_per_s[p] * shares
        links_bytes_s += table.bandwidths_bytes_s[p] * shares
    expected = sum(plain.bandwidth_bytes_s(s.profile) for s in problem.subscribers)
    needed = max(float(sent.sum()), expected + links_bytes_s)
    # Without subscriptions not even a broker without bandwidth is too small.
    by_bandwidth = 1 + int(np.searchsorted(capacities, needed, "right")) if len(sent) else 1
    by_matching = _by_matching(problem)
    most = max(1, by_bandwidth, by_matching)
    kind = "neither" if most == 1 else "bandwidth" if by_bandwidth == most else "matching"
    filled = share_filled(needed, capacities, most)
    return AllocationBounds(most, sum(table.rates_per_s) + links_per_s, kind, filled)


def share_filled(needed: float, capacities: Floats, brokers: int) -> float:
    """`capacities`: of the first broker, the first two, and so on."""
    whole = float(capacities[min(brokers, len(capacities)) - 1]) if len(capacities) else 0.0
    return needed / whole if whole else 0.0


def _extra_shares(pairs: Sequence[tuple[float, float]], capacities: Floats) -> float:
    """r_2 + r_3 + ..., as shares of the publisher's rate."""
    ordered = np.array(sorted(pairs, reverse=True))
    up_to = np.cumsum(ordered[:, 1])
    # The first j - 1 brokers cannot send up_to[i]: the subscribers up to i are spread over j.
    first = np.searchsorted(up_to, capacities, "left")
    return float(ordered[first[first < len(ordered)], 0].sum())


def _by_matching(problem: AllocationProblem) -> int:
    plain = problem.table.plain
    pairs = sorted(
        ((plain.rate_per_s(s.profile), len(s.subscriptions)) for s in problem.subscribers),
        reverse=True,
    )
    if not pairs or not problem.brokers:
        return 0
    counts = np.cumsum([n for _, n in pairs])
    most = 0
    for place in np.unique(np.linspace(0, len(pairs) - 1, THRESHOLDS_MAX).astype(int)).tolist():
        rate = pairs[place][0]
        rooms = sorted((_room(broker, rate) for broker in problem.brokers), reverse=True)
        room = np.cumsum(rooms)
        most = max(most, 1 + int(np.searchsorted(room, float(counts[place]), "left")))
    return most


def _room(broker: BrokerCapacity, rate_per_s: float) -> float:
    """The most subscriptions with which the broker matches `rate_per_s`."""
    if rate_per_s <= 0 or broker.matching.slope_s <= 0:
        return float("inf") if broker.rate_max(1) >= rate_per_s else 0.0
    room = (1 / rate_per_s - broker.matching.intercept_s) / broker.matching.slope_s
    return max(0.0, float(np.floor(room * (1 + 1e-12))))
