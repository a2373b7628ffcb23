"""Plans that know where clients are: from the best plan to the fewest moves."""

from __future__ import annotations

from random import Random

import msgspec
from tests.policies.allocation.scenes import (
    brokers,
    gathered,
    publisher,
    random_gathered,
    subscription,
)

from godwit.policies.allocation import AllocationSettings, make_plan
from godwit.policies.allocation.gathered import Gathered


def placed(random: Random, count: int = 6, bandwidth: float = 9000) -> Gathered:
    """Subscribers and publishers at random brokers in a chain."""
    names = [f"B{i:02}" for i in range(1, count + 1)]
    chain = tuple(
        msgspec.structs.replace(
            found, neighbours=tuple(names[j] for j in (i - 1, i + 1) if 0 <= j < count)
        )
        for i, found in enumerate(brokers(count, bandwidth))
    )
    document = random_gathered(random, subscriptions=30, publishers=3, capacities=chain)
    return msgspec.structs.replace(
        document,
        subscriptions=tuple(
            msgspec.structs.replace(found, broker=random.choice(names))
            for found in document.subscriptions
        ),
        publishers=tuple(
            msgspec.structs.replace(found, broker=random.choice(names))
            for found in document.publishers
        ),
    )


def test_moves_fall_and_costs_rise_with_stay() -> None:
    for seed in range(4):
        document = placed(Random(f"stay {seed}"))
        plans = [make_plan(document, AllocationSettings(stay=stay)) for stay in (0.0, 0.5, 1.0)]
        moves = [plan.moves for plan in plans]
        assert moves == sorted(moves, reverse=True), f"seed {seed}"
        sizes = [len(plan.brokers) for plan in plans]
        assert sizes == sorted(sizes), f"seed {seed}"
        assert plans[0] == make_plan(document)
        for plan in plans:
            assert all(found.utilisation < 1 for found in plan.brokers), f"seed {seed}"
            assert set(plan.assignment) == {s.id for s in document.subscriptions}


def test_one_moves_nothing_if_no_broker_is_above_its_capacity() -> None:
    document = placed(Random(3))
    plan = make_plan(document, AllocationSettings(stay=1.0))
    assert plan.moves == 0
    assert {s.id: s.broker for s in document.subscriptions} == plan.assignment
    assert {p.id: p.broker for p in document.publishers} == plan.publishers
    links = {frozenset(link) for link in plan.links}
    assert links <= {frozenset((f"B{i:02}", f"B{i + 1:02}")) for i in range(1, 6)}


def test_one_moves_only_what_is_too_much() -> None:
    """Three of 640 at a broker of 1,500: one of them moves."""
    document = gathered(
        [subscription(f"s{i}", "1" * 64, broker="B01") for i in range(3)]
        + [subscription("s3", "1", broker="B02")],
        brokers(3, 1500),
        [publisher(broker="B02")],
    )
    plan = make_plan(document, AllocationSettings(stay=1.0))
    assert plan.moves == 1
    assert plan.publishers == {"p1": "B02"}


def test_brokers_are_exchanged_for_those_where_clients_are() -> None:
    """The best plan is any one of equal brokers; B03 has most clients."""
    document = gathered(
        [subscription(f"s{i}", "1", broker="B03") for i in range(5)]
        + [subscription("s5", "1", broker="B01")],
        publishers=[publisher(broker="B03")],
    )
    assert make_plan(document).root == "B01"
    plan = make_plan(document, AllocationSettings(stay=0.1))
    assert (plan.root, plan.moves, len(plan.brokers)) == ("B03", 1, 1)


def test_brokers_that_are_not_known_do_not_stop_it() -> None:
    document = gathered([subscription("s1", "1", broker="gone"), subscription("s2", "1")])
    plan = make_plan(document, AllocationSettings(stay=1.0))
    assert plan.moves == 1
