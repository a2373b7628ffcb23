"""Lower bounds of the maximum load: what no assignment of the subscribers to brokers can go below.

Not in the thesis.  If a cluster stays uneven, they tell an operator how much better any balancer
could do; an experiment reports its distance from the best possible.  All are functions of what the
brokers publish about themselves (`BrokerInfo`), so that they need no global knowledge.

Let ou, ot, n, m, b, ir be those of each broker, N the sum of the n.

output     Moving a subscriber moves its bytes from one broker to another, and neither adds nor
           removes any.  So max Or >= sum of ou / sum of ot, all brokers filled to one level; and
           max Or >= o / max ot for the bytes o of the largest subscriber, which must be somewhere.
matching   d = m n + b of each broker, all n together N: water is poured over the lines up to the
           level D with sum of (D - b) / m = N.  Below it there is no room for N subscriptions.  A
           broker without subscriptions has its b, so max d >= max(D, largest b).
input      What enters a broker now is wanted by one of its subscribers, so in any assignment it
           enters some broker: together the brokers receive at least U, the largest ir.  A broker
           at utilisation r takes in r / d(n) per second, so max Ir >= U / sum of 1 / d(n).  As
           1 / d is convex in n, that sum is the largest if one broker has all subscriptions but
           one for each other broker; the least of these bounds over the choice of that broker
           holds for any assignment.  It is far from the optimum where many publications must
           enter several brokers.

B1  Every bound is at most the maximum of any assignment, also of the present one.
Tested   tests/policies/offload/test_load_bounds.py: against all assignments of small clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from godwit.errors import UsageError
from godwit.policies.offload.broker_load import BrokerInfo
from godwit.profile.matching_delay import DELAY_MIN_S


@dataclass(frozen=True, slots=True)
class LoadBounds:
    """The least maximum of each metric that any assignment of the subscribers has."""

    input_utilisation: float
    matching_delay_s: float
    output_utilisation: float


def load_bounds(
    brokers: Sequence[BrokerInfo],
    *,
    largest_subscriber_bytes_s: float = 0.0,
) -> LoadBounds:
    """Of brokers that may exchange subscribers.

    largest_subscriber_bytes_s  the output bandwidth of the largest subscriber, if known
    """
    if not brokers:
        raise UsageError("the load of no broker is known; bounds need at least one")
    return LoadBounds(
        input_utilisation=input_bound(brokers),
        matching_delay_s=matching_bound_s(brokers),
        output_utilisation=output_bound(
            brokers, largest_subscriber_bytes_s=largest_subscriber_bytes_s
        ),
    )


def output_bound(
    brokers: Sequence[BrokerInfo], *, largest_subscriber_bytes_s: float = 0.0
) -> float:
    used = sum(info.output_used_bytes_s for info in brokers)
    totals = [info.output_total_bytes_s for info in brokers]
    return max(
        _ratio(used, sum(totals)),
        _ratio(largest_subscriber_bytes_s, max(totals, default=0.0)),
    )


def matching_bound_s(brokers: Sequence[BrokerInfo]) -> float:
    lines = [(info.matching.intercept_s, info.matching.slope_s) for info in brokers]
    subscriptions = sum(info.subscriptions for info in brokers)
    highest_s = max((intercept_s for intercept_s, _ in lines), default=0.0)
    return max(DELAY_MIN_S, highest_s, _level_s(lines, subscriptions))


def _level_s(lines: Sequence[tuple[float, float]], subscriptions: int) -> float:
    """The level of `subscriptions` poured over lines, if it is above all their intercepts.

    If it is not, then what is found here is not above them either: the highest one decides.
    """
    if any(slope_s <= 0 for _, slope_s in lines):
        return -inf  # One takes any number at its intercept.
    per_s = sum(1 / slope_s for _, slope_s in lines)
    return (subscriptions + sum(b_s / slope_s for b_s, slope_s in lines)) / per_s


def input_bound(brokers: Sequence[BrokerInfo]) -> float:
    wanted = max(info.input_per_s for info in brokers)
    subscriptions = sum(info.subscriptions for info in brokers)
    with_one = [1 / info.matching.delay_s(1) for info in brokers]
    most = subscriptions - (len(brokers) - 1)
    if most < 1 or any(_is_clamped(info) for info in brokers):
        return wanted / sum(with_one)  # Every broker as fast as it can be.
    return wanted / max(
        sum(with_one) - with_one[place] + 1 / info.matching.delay_s(most)
        for place, info in enumerate(brokers)
    )


def _is_clamped(info: BrokerInfo) -> bool:
    """Whether the line gives no delay above 0 for one subscription; 1 / d is then not convex."""
    return info.matching.slope_s + info.matching.intercept_s <= DELAY_MIN_S


def _ratio(used: float, total: float) -> float:
    if used <= 0:
        return 0.0
    return used / total if total > 0 else inf
