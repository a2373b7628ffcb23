"""Local search: never worse, within capacity, and better where it can be."""

from __future__ import annotations

from random import Random

from tests.policies.allocation.scenes import (
    bits_of,
    brokers,
    gathered,
    publisher,
    random_gathered,
    subscription,
)

from godwit.policies.allocation import AllocationSettings, make_plan
from godwit.policies.allocation.plan import AllocationPlan
from godwit.policies.allocation.plan_improvement import within


def score(plan: AllocationPlan) -> tuple[int, float]:
    return len(plan.brokers), round(sum(found.input_per_s for found in plan.brokers), 6)


def test_it_is_never_worse_and_often_better() -> None:
    better = 0
    for seed in range(8):
        document = random_gathered(
            Random(f"improve {seed}"), subscriptions=40, publishers=3, capacities=brokers(20, 4500)
        )
        for algorithm in ("bin-packing", "cram-iou"):
            start = make_plan(document, AllocationSettings(algorithm=algorithm))
            settings = AllocationSettings(algorithm=algorithm, improve_steps=200)
            found = make_plan(document, settings)
            assert score(found) <= score(start), f"seed {seed}"
            assert all(each.utilisation < 1 for each in found.brokers), f"seed {seed}"
            assert set(found.assignment) == set(start.assignment)
            assert found == make_plan(document, settings)
            better += score(found) < score(start)
    assert better > 2


def test_a_broker_that_only_forwards_is_released_where_others_have_room() -> None:
    """Two brokers of 1,500 with 1,280 and 640: the second can serve the first."""
    document = gathered(
        [subscription(f"s{i}", "1" * 64) for i in range(3)], brokers(3, 1500), [publisher()]
    )
    plain = AllocationSettings(algorithm="bin-packing", overlay_optimisations=False)
    assert len(make_plan(document, plain).brokers) == 3
    better = make_plan(document, AllocationSettings(algorithm="bin-packing", improve_steps=5))
    assert len(better.brokers) == better.lower_bound_brokers == 2


def test_units_go_where_their_traffic_is() -> None:
    """BIN PACKING mixes the two halves; the search separates them."""
    halves = [bits_of(range(32)), bits_of(range(32, 64))]
    document = gathered([subscription(f"s{i}", halves[i % 2]) for i in range(9)], brokers(6, 2600))
    start = make_plan(document, AllocationSettings(algorithm="bin-packing"))
    found = make_plan(document, AllocationSettings(algorithm="bin-packing", improve_steps=400))
    assert score(found)[1] < score(start)[1]


def test_the_time_is_that_of_the_clock() -> None:
    now = iter(range(100))
    may_go_on = within(3.0, 0, lambda: float(next(now)))
    assert [may_go_on() for _ in range(4)] == [True, True, False, False]
    may_go_on = within(0.0, 2, lambda: 0.0)
    assert [may_go_on() for _ in range(3)] == [True, True, False]
    document = random_gathered(
        Random(1), subscriptions=40, publishers=3, capacities=brokers(20, 4500)
    )
    ticks = iter(range(10_000))
    plan = make_plan(document, AllocationSettings(improve_s=50), clock=lambda: float(next(ticks)))
    assert plan.seconds < 200
