"""Bounds from counted loads against the bounds of the whole problem."""

from __future__ import annotations

from random import Random

import pytest
from tests.policies.allocation.scenes import (
    brokers,
    gathered,
    problem_with_units,
    random_gathered,
    subscription,
)

from godwit.policies.allocation.allocation_bounds import allocation_bounds
from godwit.policies.allocation.gathered_reading import AllocationProblem
from godwit.policies.large_allocation.load_histogram import LoadHistogram


def histogram_of(problem: AllocationProblem) -> LoadHistogram:
    """Subscribers with the same profile are added together, as Spark has them."""
    found = LoadHistogram()
    same: dict[object, list[int]] = {}
    for place, subscriber in enumerate(problem.subscribers):
        same.setdefault(subscriber.profile.key, []).append(place)
    for places in same.values():
        members = [problem.subscribers[place] for place in places]
        subscriptions = sum(len(each.subscriptions) for each in members)
        found.add(members[0].profile, problem.table, len(members), subscriptions)
    return found


@pytest.mark.parametrize("seed", range(20))
def test_bounds_by_bandwidth_are_those_of_the_problem(seed: int) -> None:
    random = Random(seed)
    capacities = brokers(12, random.choice((1_500.0, 4_000.0, 1e6)))
    document = random_gathered(random, subscriptions=60, publishers=3, capacities=capacities)
    problem, _, _ = problem_with_units(document)
    found, expected = histogram_of(problem), allocation_bounds(problem)
    bounds = found.bounds(problem.brokers, problem.table)
    assert (bounds.brokers, bounds.kind) == (expected.brokers, expected.kind)
    assert bounds.traffic_per_s == pytest.approx(expected.traffic_per_s)
    assert found.subscribers == found.subscriptions == 60


@pytest.mark.parametrize("seed", range(10))
def test_the_bound_by_matching_is_never_above_and_nearly_as_high(seed: int) -> None:
    random = Random(seed)
    capacities = brokers(40, 1e9, base_s=0.001, each_s=0.004)
    document = random_gathered(random, subscriptions=60, publishers=3, capacities=capacities)
    problem, _, _ = problem_with_units(document)
    found = histogram_of(problem).bounds(problem.brokers, problem.table)
    expected = allocation_bounds(problem)
    assert expected.kind == found.kind == "matching"
    assert expected.brokers - 1 <= found.brokers <= expected.brokers


def test_subscribers_that_receive_nothing_add_no_load() -> None:
    document = gathered([subscription("s1", "0"), subscription("s2", "0")], brokers(2, 10.0))
    problem, _, _ = problem_with_units(document)
    found = histogram_of(problem)
    assert found.total_bytes_s == 0
    assert found.bounds(problem.brokers, problem.table).brokers == 1
