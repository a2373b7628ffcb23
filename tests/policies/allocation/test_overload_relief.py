"""What is only known of a finished tree: unwanted publications, and publishers that subscribe."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.policies.allocation.plan_checker import check_plan
from tests.policies.allocation.scenes import bits_of, broker, gathered, publisher, subscription

from godwit.policies.allocation.gathered import Gathered
from godwit.policies.allocation.plan import AllocationPlan, is_above_capacity
from godwit.policies.allocation.planner import make_plan
from godwit.policies.allocation.settings import AllocationSettings


def checked(document: Gathered, *, within_capacity: bool = True) -> AllocationPlan:
    plan = make_plan(document, AllocationSettings(algorithm="bin-packing"))
    as_json = json.loads(msgspec.json.encode(document)), json.loads(msgspec.json.encode(plan))
    check_plan(*as_json, within_capacity=within_capacity)
    assert within_capacity != any(map(is_above_capacity, plan.brokers))
    return plan


#: 64 publications/s arrive, of which one is wanted; with four subscriptions it matches 50/s.
SLOW = broker("slow", 900, base_s=0.0, each_s=1 / 200)
WANTED = [subscription(f"s{i}", bits_of({1})) for i in range(4)]


def test_a_broker_that_cannot_match_what_nobody_wants_is_exchanged() -> None:
    plan = checked(gathered(WANTED, [SLOW, broker("fast", 950), broker("fastest", 1_000)]))
    assert (plan.root, plan.released) == ("fast", ("fastest", "slow"))


def test_or_a_free_broker_takes_the_publishers() -> None:
    """No broker matches everything with four subscriptions; each does with one link."""
    other = broker("other", 900, base_s=0.0, each_s=1 / 200)
    plan = checked(gathered(WANTED, [SLOW, other]))
    assert plan.links == (("other", "slow"),)
    assert plan.publishers == {"p1": "slow"}
    assert set(plan.assignment.values()) == {"other"}
    assert [each.input_per_s for each in plan.brokers] == [64, 1]


def test_without_a_free_broker_the_plan_says_that_one_is_above_its_capacity() -> None:
    plan = checked(gathered(WANTED, [SLOW]), within_capacity=False)
    assert plan.brokers[0].matching_utilisation == pytest.approx(64 * 4 / 200)


def test_a_publisher_that_subscribes_leaves_its_broker_room_for_its_traffic() -> None:
    """B1 has room for all but one subscription, and then none for what it sends to that one."""
    document = gathered(
        [
            subscription("own", "1" * 64, client="c"),
            *(subscription(f"s{i}", bits_of(range(32))) for i in range(6)),
        ],
        [broker("B1", 2_300), broker("B2", 1_300)],
        [publisher(client="c")],
    )
    plan = checked(document)
    assert (plan.publishers["p1"], plan.assignment["own"]) == ("B1", "B1")
    assert [each.subscriptions for each in plan.brokers if each.id == "B1"] == [5]


def test_the_thesiss_plan_stays_as_it_is() -> None:
    other = broker("other", 900, base_s=0.0, each_s=1 / 200)
    settings = AllocationSettings(algorithm="bin-packing", keep="last")
    plan = make_plan(gathered(WANTED, [SLOW, other]), settings)
    assert (len(plan.brokers), is_above_capacity(plan.brokers[0])) == (1, True)
