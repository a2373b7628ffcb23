"""Lower bounds: never above the best of all plans, tried one by one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

import pytest
from tests.policies.allocation.scenes import (
    bits_of,
    broker,
    brokers,
    gathered,
    problem_with_units,
    subscription,
)

from godwit.policies.allocation.allocation_bounds import allocation_bounds
from godwit.policies.allocation.expected_traffic import ExpectedTraffic
from godwit.policies.allocation.gathered_reading import AllocationProblem
from godwit.policies.allocation.overlay_tree import OverlayTree
from godwit.policies.allocation.publisher_placement import BrokerLimits
from godwit.policies.allocation.units import AllocationUnit


def all_trees(names: tuple[str, ...]) -> Iterator[tuple[str, dict[str, str]]]:
    """Every way to hang brokers below each other (some of them twice)."""
    root = names[0]
    for parents in product(names, repeat=len(names) - 1):
        chosen = dict(zip(names[1:], parents, strict=True))
        reached, order = {root}, [root]
        for parent in order:
            fresh = [n for n, p in chosen.items() if p == parent and n not in reached]
            reached.update(fresh)
            order += fresh
        if len(reached) == len(names):
            yield root, chosen


def all_plans(problem: AllocationProblem, units: list[AllocationUnit]) -> Iterator[ExpectedTraffic]:
    """Every assignment, tree and place of publishers in which no broker is above its capacity."""
    ids = [b.id for b in problem.brokers]
    capacities = {b.id: b for b in problem.brokers}
    for homes in product(ids, repeat=len(units)):
        used = tuple(sorted(set(homes))) or (ids[0],)
        for root, parents in all_trees(used):
            served = {
                name: tuple(u for u, home in zip(units, homes, strict=True) if home == name)
                for name in used
            }
            tree = OverlayTree(root, parents, {n: capacities[n] for n in used}, served)
            traffic = ExpectedTraffic(tree, problem.subscribers, problem.table)
            limits = BrokerLimits(traffic)
            for places in product(range(len(used)), repeat=len(problem.table.ids)):
                for p, place in enumerate(places):
                    if traffic.homes[p] != place:
                        traffic.move(p, place)
                if (traffic.output_bytes_s < limits.capacities).all() and (
                    traffic.input_per_s <= limits.rates_max * (1 + 1e-9)
                ).all():
                    yield traffic


def test_no_plan_is_below_the_bounds() -> None:
    tight = {"bandwidth": 0, "matching": 0, "traffic": 0}
    kinds = ["1" * 64, bits_of(range(32)), bits_of(range(16)), bits_of(range(24, 64))]
    for seed in range(34):
        random = Random(f"bounds {seed}")
        slow = random.random() < 0.4
        each_s = random.choice((0.005, 0.007)) if slow else 0.0
        capacities = [
            broker(f"B{i}", 9000 if slow else random.choice((700, 1000, 1300)), 0.0, each_s)
            for i in range(3)
        ]
        document = gathered(
            [subscription(f"s{i}", random.choice(kinds[: 1 if slow else 4])) for i in range(4)],
            capacities,
        )
        problem, units, _ = problem_with_units(document)
        bounds = allocation_bounds(problem)
        found = [
            (len(traffic.tree.order), traffic.total_input_per_s)
            for traffic in all_plans(problem, units)
        ]
        if not found:
            continue
        fewest, least = min(n for n, _ in found), min(rate for _, rate in found)
        assert bounds.brokers <= fewest, f"seed {seed}"
        assert bounds.traffic_per_s <= least + 1e-9, f"seed {seed}"
        if bounds.brokers == fewest > 1:
            tight[bounds.kind] += 1
        tight["traffic"] += bounds.traffic_per_s == pytest.approx(least) and fewest > 1
    assert min(tight.values()) > 0, tight


def test_bandwidth_counts_strictly() -> None:
    """2 x 10 bytes/s of unlike publications: two brokers of 20 are needed, one of 21 is enough."""
    some = [subscription("s1", bits_of({1})), subscription("s2", bits_of({2}))]
    for bandwidth, expected in ((20, (2, "bandwidth")), (21, (1, "neither"))):
        bounds = allocation_bounds(problem_with_units(gathered(some, brokers(5, bandwidth)))[0])
        assert (bounds.brokers, bounds.kind) == expected


def test_a_broker_that_is_full_with_one_subscription() -> None:
    """4 x 640 bytes/s at brokers that send less than 1,280: one each, so four."""
    document = gathered([subscription(f"s{i}", "1" * 64) for i in range(4)], brokers(5, 1280))
    assert allocation_bounds(problem_with_units(document)[0]).brokers == 4


def test_links_between_brokers_count() -> None:
    """2,560 bytes/s to subscribers fit two brokers of 1,300, but not with 640 on the link."""
    document = gathered([subscription(f"s{i}", "1" * 64) for i in range(4)], brokers(5, 1300))
    bounds = allocation_bounds(problem_with_units(document)[0])
    assert bounds.brokers == 3
    assert bounds.traffic_per_s == 64 + 64


def test_the_strongest_brokers_count_first() -> None:
    some = [broker("strong", 2000), *(broker(f"weak{i}", 10) for i in range(9))]
    document = gathered([subscription(f"s{i}", "1" * 64) for i in range(3)], some)
    assert allocation_bounds(problem_with_units(document)[0]).brokers == 1


def test_matching_counts() -> None:
    """32 publications/s with at most 3 subscriptions: 7 of them need three brokers."""
    slow = brokers(5, 1e9, base_s=0.0, each_s=1 / 100)
    document = gathered([subscription(f"s{i}", bits_of(range(32))) for i in range(7)], slow)
    bounds = allocation_bounds(problem_with_units(document)[0])
    assert (bounds.brokers, bounds.kind) == (3, "matching")


def test_a_part_of_the_subscribers_may_need_more_brokers_than_all() -> None:
    """8 of 64/s need 4 brokers with at most 2 each; 40 of 1/s would fit one broker."""
    slow = brokers(9, 1e9, base_s=0.0, each_s=1 / 130)
    heavy = [subscription(f"h{i}", "1" * 64) for i in range(8)]
    light = [subscription(f"l{i}", bits_of({i})) for i in range(40)]
    assert allocation_bounds(problem_with_units(gathered(heavy + light, slow))[0]).brokers >= 4


def test_without_subscriptions_one_broker_and_the_publishers() -> None:
    bounds = allocation_bounds(problem_with_units(gathered([]))[0])
    assert (bounds.brokers, bounds.traffic_per_s, bounds.kind) == (1, 64, "neither")
