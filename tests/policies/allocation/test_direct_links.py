"""Trees without brokers that only forward."""

from __future__ import annotations

from random import Random

import pytest
from tests.policies.allocation.scenes import (
    brokers,
    gathered,
    publisher,
    random_gathered,
    subscription,
)
from tests.sweeps import seeds

from godwit.policies.allocation.gathered import GatheredSubscription
from godwit.policies.allocation.planner import make_plan
from godwit.policies.allocation.settings import AllocationSettings

FULL = "1" * 64


def two_stocks() -> list[GatheredSubscription]:
    """Of each publisher two subscriptions; a broker of 1,500 has room for those of one."""
    return [subscription(f"s{p}{i}", {f"p{p}": FULL}) for p in (1, 2) for i in (1, 2)]


def test_brokers_whose_publishers_are_with_them_need_no_one_between() -> None:
    """Each broker has the publisher of its subscribers: nothing crosses a link."""
    document = gathered(two_stocks(), brokers(3, 1500), [publisher("p1"), publisher("p2")])
    thesis = make_plan(document, AllocationSettings(algorithm="bin-packing", keep="last"))
    assert len(thesis.brokers) == 3
    plan = make_plan(document, AllocationSettings(algorithm="bin-packing"))
    assert len(plan.brokers) == plan.lower_bound_brokers == 2
    assert all(broker.utilisation < 1 for broker in plan.brokers)
    assert sum(broker.input_per_s for broker in plan.brokers) == plan.lower_bound_traffic_per_s


def test_publishers_at_the_root_need_the_broker_between() -> None:
    """All publications pass, and no broker has room to pass them on."""
    document = gathered(two_stocks(), brokers(3, 1500), [publisher("p1"), publisher("p2")])
    settings = AllocationSettings(algorithm="bin-packing", relocate_publishers=False)
    assert len(make_plan(document, settings).brokers) == 3


@pytest.mark.parametrize("seed", range(seeds(20, whole=200)))
def test_no_broker_exceeds_its_capacity_and_none_is_added(seed: int) -> None:
    document = random_gathered(
        Random(f"direct {seed}"), subscriptions=40, publishers=3, capacities=brokers(20, 4500)
    )
    for algorithm in ("bin-packing", "cram-iou"):
        plan = make_plan(document, AllocationSettings(algorithm=algorithm))
        thesis = make_plan(document, AllocationSettings(algorithm=algorithm, keep="last"))
        assert len(plan.brokers) <= len(thesis.brokers), f"seed {seed}"
        assert all(broker.utilisation < 1 for broker in plan.brokers), f"seed {seed}"
        assert set(plan.assignment) == set(thesis.assignment)
