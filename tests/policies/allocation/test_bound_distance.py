"""A plan says why it has more brokers than the lower bound."""

from __future__ import annotations

import pytest
from tests.policies.allocation.scenes import (
    bits_of,
    brokers,
    gathered,
    problem_with_units,
    subscription,
)

from godwit.policies.allocation.allocation_bounds import AllocationBounds, allocation_bounds
from godwit.policies.allocation.bound_distance import why_above
from godwit.policies.allocation.planner import make_plan
from godwit.policies.allocation.settings import AllocationSettings


def test_what_the_load_fills() -> None:
    """800 bytes/s to four subscribers at two brokers at least, so 200 over a link as well."""
    some = [subscription(f"s{i}", bits_of(range(20))) for i in range(4)]
    problem, _, _ = problem_with_units(gathered(some, brokers(5, 500)))
    bounds = allocation_bounds(problem)
    assert (bounds.brokers, bounds.kind) == (3, "bandwidth")
    assert bounds.filled == pytest.approx((800 + 200) / 1_500)


def test_a_plan_that_meets_the_bound_says_nothing() -> None:
    plan = make_plan(gathered([subscription("s1", "1")]))
    assert (plan.lower_bound_brokers, plan.above_bound) == (1, "")


def test_baselines_use_all_brokers() -> None:
    plan = make_plan(gathered([subscription("s1", "1")]), AllocationSettings(algorithm="automatic"))
    assert plan.above_bound == "The algorithm uses all brokers."


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("bandwidth", "fill 93.8% of the largest broker"),
        ("matching", "can match"),
        ("neither", "the bound is weak"),
    ],
)
def test_the_kinds_of_bounds(kind: str, said: str) -> None:
    some = [subscription(f"s{i}", "1" * 64) for i in range(4)]
    found = make_plan(gathered(some, brokers(4, 1_300))).brokers
    reason = why_above(AllocationBounds(1, 1.0, kind, 0.938), found, uses_all=False)
    assert said in reason.lower() or said in reason
    connecting = sum(broker.subscriptions == 0 for broker in found)
    assert connecting == 1
    assert " 1 of the 3 brokers serves no subscription; it connects others. " in reason
