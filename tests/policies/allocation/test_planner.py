"""Plans: odd input, and what holds for every plan."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from tests.policies.allocation.scenes import (
    bits_of,
    broker,
    brokers,
    gathered,
    publisher,
    random_gathered,
    subscription,
)

from godwit.errors import UsageError
from godwit.policies.allocation import ALGORITHMS, AllocationSettings, UnallocatableError, make_plan
from godwit.policies.allocation.gathered import Gathered
from godwit.policies.allocation.plan import AllocationPlan

OWN = [name for name in ALGORITHMS if name in ("fbf", "bin-packing") or name.startswith("cram")]


def check(document: Gathered, plan: AllocationPlan) -> None:
    kept = {found.id for found in plan.brokers}
    assert set(plan.assignment) == {s.id for s in document.subscriptions}
    assert set(plan.publishers) == {p.id for p in document.publishers}
    assert set(plan.assignment.values()) | set(plan.publishers.values()) | {plan.root} <= kept
    assert kept | set(plan.released) == {b.id for b in document.brokers}
    assert kept.isdisjoint(plan.released)
    children = [child for child, _ in plan.links]
    assert sorted(children) == sorted(kept - {plan.root})
    parents = dict(plan.links)
    for name in kept:
        steps = 0
        while name != plan.root:
            name, steps = parents[name], steps + 1  # noqa: PLW2901
            assert steps <= len(kept), "a cycle"
    assert all(found.reason.endswith(".") for found in plan.brokers)
    assert sum(found.subscriptions for found in plan.brokers) == len(document.subscriptions)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_random_documents(algorithm: str) -> None:
    for seed in range(6):
        random = Random(f"plans {seed}")
        capacities = [broker(f"B{i:02}", random.choice((1500, 3000, 6000))) for i in range(16)]
        document = random_gathered(random, subscriptions=40, publishers=4, capacities=capacities)
        settings = AllocationSettings(algorithm=algorithm, seed=seed)
        plan = make_plan(document, settings)
        check(document, plan)
        assert plan == make_plan(document, settings)
        if algorithm in OWN:
            assert all(found.utilisation < 1 for found in plan.brokers)
            assert all(found.matching_utilisation <= 1 for found in plan.brokers)
            assert plan.lower_bound_brokers <= len(plan.brokers)
            total = sum(found.input_per_s for found in plan.brokers)
            assert plan.lower_bound_traffic_per_s <= total + 1e-9


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_no_subscriptions(algorithm: str) -> None:
    document = gathered([], [broker("big", 900), broker("small", 100)])
    plan = make_plan(document, AllocationSettings(algorithm=algorithm))
    check(document, plan)
    if algorithm in OWN:
        assert (plan.root, plan.released) == ("small", ("big",))
        assert plan.brokers[0].input_per_s == 64


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_one_broker(algorithm: str) -> None:
    document = gathered([subscription("s1", "1"), subscription("s2", "11")], brokers(1))
    plan = make_plan(document, AllocationSettings(algorithm=algorithm))
    check(document, plan)
    assert (plan.root, plan.links, plan.mean_hops) == ("B01", (), 0)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_publisher_without_subscribers(algorithm: str) -> None:
    document = gathered([subscription("s1", "1")], publishers=[publisher(), publisher("idle", 5)])
    plan = make_plan(document, AllocationSettings(algorithm=algorithm))
    check(document, plan)
    home = next(found for found in plan.brokers if found.id == plan.publishers["idle"])
    assert home.input_per_s >= 5


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_subscriptions_that_receive_nothing(algorithm: str) -> None:
    document = gathered([subscription(f"s{i}", "000") for i in range(5)])
    check(document, make_plan(document, AllocationSettings(algorithm=algorithm)))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_profiles_of_a_publisher_that_left(algorithm: str) -> None:
    document = gathered(
        [subscription("s1", {"gone": "111"}), subscription("s2", {"p1": "1", "gone": "1"})]
    )
    plan = make_plan(document, AllocationSettings(algorithm=algorithm))
    check(document, plan)
    assert "gone" not in plan.publishers


@pytest.mark.parametrize("algorithm", OWN)
def test_brokers_without_capacity_are_not_used(algorithm: str) -> None:
    document = gathered([subscription("s1", "1")], [broker("none", 0), broker("some", 1000)])
    plan = make_plan(document, AllocationSettings(algorithm=algorithm))
    assert (plan.root, plan.released) == ("some", ("none",))
    with pytest.raises(UnallocatableError, match=r"10 bytes/s of output bandwidth .* missing"):
        make_plan(gathered([subscription("s1", "1")], [broker("none", 0)]),
                  AllocationSettings(algorithm=algorithm))  # fmt: skip


@pytest.mark.parametrize("algorithm", OWN)
def test_more_load_than_all_brokers_can_carry(algorithm: str) -> None:
    document = gathered([subscription(f"s{i}", "1" * 64) for i in range(9)], brokers(5, 1000))
    with pytest.raises(UnallocatableError, match="760 bytes/s are missing"):
        make_plan(document, AllocationSettings(algorithm=algorithm))


def test_no_brokers() -> None:
    with pytest.raises(UsageError, match="brokers: there are none"):
        make_plan(gathered([], []))


def test_clusters_save_traffic() -> None:
    """Two groups that share nothing, on brokers that hold one group each."""
    halves = [bits_of(range(32)), bits_of(range(32, 64))]
    document = gathered([subscription(f"s{i}", halves[i % 2]) for i in range(8)], brokers(4, 1300))
    plan = make_plan(document)
    assert plan.clusters == 2
    assert len({plan.assignment[f"s{i}"] for i in range(0, 8, 2)}) == 1
    loads = sorted(found.input_per_s for found in plan.brokers if found.subscriptions)
    mixed = make_plan(document, AllocationSettings(algorithm="bin-packing"))
    assert sum(loads) < sum(found.input_per_s for found in mixed.brokers)


def test_a_publisher_that_also_subscribes_is_where_its_client_is() -> None:
    document = gathered(
        [subscription("own", bits_of({1}), client="c"), subscription("s2", "1" * 64),
         subscription("s3", "1" * 64)],
        brokers(4, 1290),
        [publisher(client="c")],
    )  # fmt: skip
    plan = make_plan(document)
    assert plan.publishers["p1"] == plan.assignment["own"]


def test_moves_are_counted_where_clients_are_known() -> None:
    document = gathered(
        [subscription("s1", "1", broker="B03"), subscription("s2", "1", broker="B01"),
         subscription("s3", "1")],
        publishers=[publisher(broker="B02")],
    )  # fmt: skip
    plan = make_plan(document)
    home = plan.root
    moved = sum(here != home for here in ("B03", "B01", "B02"))
    assert plan.moves == moved


def test_the_clock_is_an_argument() -> None:
    ticks = iter([10.0, 12.5])
    plan = make_plan(gathered([subscription("s1", "1")]), clock=lambda: next(ticks))
    assert plan.seconds == 2.5
    with pytest.raises(UsageError, match="improve_s needs a clock"):
        make_plan(gathered([]), AllocationSettings(improve_s=1))


def test_a_plan_is_json_in_the_documented_form() -> None:
    plan = make_plan(gathered([subscription("s1", "11")]))
    document = msgspec.json.decode(msgspec.json.encode(plan))
    for key in ("algorithm", "assignment", "links", "root", "publishers", "brokers",
                "lower_bound_brokers", "closeness_evaluations", "seconds"):  # fmt: skip
        assert key in document
    assert document["assignment"] == {"s1": "B01"}
    assert {"id", "input_per_s", "output_bytes_s", "utilisation"} <= set(document["brokers"][0])
    assert msgspec.json.decode(msgspec.json.encode(plan), type=AllocationPlan) == plan


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"algorithm": "magic"}, "algorithm is 'magic'; it must be one of manual,"),
        ({"search": "fast"}, "search is 'fast'"),
        ({"keep": "most"}, "keep is 'most'"),
        ({"stay": 1.5}, "stay is 1.5"),
        ({"improve_steps": -1}, "improve_steps is -1"),
        ({"improve_s": float("nan")}, "improve_s is nan"),
        ({"automatic_fanout": 0}, "automatic_fanout is 0"),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_settings_are_checked(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        AllocationSettings(**settings)  # type: ignore[arg-type]
    assert message in str(raised.value)
