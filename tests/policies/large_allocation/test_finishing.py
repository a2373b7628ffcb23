"""The last step: what the planner makes of clusters."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace
from tests.policies.allocation.scenes import (
    brokers,
    gathered,
    problem_with_units,
    publisher,
    random_gathered,
    subscription,
)

from godwit.errors import UsageError
from godwit.policies.allocation.capacity import UnallocatableError
from godwit.policies.allocation.gathered import Gathered
from godwit.policies.allocation.plan import AllocationPlan
from godwit.policies.allocation.planner import make_plan
from godwit.policies.allocation.settings import AllocationSettings
from godwit.policies.large_allocation.finishing import (
    FINISH_MAX,
    FinishedPlan,
    SubscriberCluster,
    check_settings,
    finished,
    runs_on_spark,
)

SETTINGS = AllocationSettings(compensate=False)


def scene(seed: int) -> Gathered:
    return random_gathered(
        Random(seed), subscriptions=40, publishers=3, capacities=brokers(12, 6_000.0)
    )


def finished_one_by_one(document: Gathered, *, finish_max: int = FINISH_MAX) -> FinishedPlan:
    """Each subscriber is a cluster."""
    problem, _, _ = problem_with_units(document)
    clusters = [
        SubscriberCluster(
            each.profile,
            each.profile.counts,
            problem.table.bandwidth_bytes_s(each.profile),
            len(each.subscriptions),
        )
        for each in problem.subscribers
    ]
    return finished(clusters, problem.table, problem.brokers, SETTINGS, finish_max=finish_max)


def without_assignment(plan: AllocationPlan) -> AllocationPlan:
    return replace(plan, assignment={}, clients=dict(plan.publishers), moves=0)


@pytest.mark.parametrize("seed", range(4))
def test_if_each_cluster_is_a_subscriber_it_is_the_plan_of_one_machine(seed: int) -> None:
    document = scene(seed)
    expected = make_plan(document, SETTINGS)
    done = finished_one_by_one(document)
    assert done.plan == without_assignment(expected)
    names = [each.id for each in document.subscriptions]
    assert dict(zip(names, done.homes, strict=True)) == expected.assignment


def test_too_many_clusters_are_packed_as_they_are() -> None:
    document = scene(5)
    expected = make_plan(document, replace(SETTINGS, algorithm="bin-packing"))
    assert finished_one_by_one(document, finish_max=39).plan == without_assignment(expected)
    assert finished_one_by_one(document, finish_max=40).plan != without_assignment(expected)


def test_a_cluster_sends_a_copy_to_each_of_its_receivers_and_receives_one() -> None:
    document = gathered([subscription("s1", "1111")], brokers(1))
    problem, _, _ = problem_with_units(document)
    profile = problem.subscribers[0].profile
    cluster = SubscriberCluster(profile, {0: 3 * 4}, 3 * 40.0, 3)
    (broker,) = finished([cluster], problem.table, problem.brokers, SETTINGS).plan.brokers
    assert broker.output_bytes_s == 120.0
    assert broker.messages_per_s - broker.input_per_s == 12.0
    assert broker.subscriptions == 3
    assert "12 deliveries/s from 4 publications/s" in broker.reason


def test_a_publisher_is_where_its_client_is() -> None:
    document = gathered(
        [subscription("s1", {"p1": "1" * 64}), subscription("s2", {"p2": "1" * 64})],
        brokers(4, 700.0),
        [publisher("p1"), publisher("p2", client="s1")],
    )
    problem, _, _ = problem_with_units(document)
    clusters = [
        SubscriberCluster(each.profile, each.profile.counts, 640.0, 1)
        for each in problem.subscribers
    ]
    settings = replace(SETTINGS, overlay=False)
    done = finished(clusters, problem.table, problem.brokers, settings, pinned={1: 0})
    assert done.plan.publishers["p2"] == done.homes[0]
    free = finished(clusters, problem.table, problem.brokers, settings)
    assert free.plan.publishers["p2"] == free.homes[1]


def test_without_clusters_one_broker_is_kept() -> None:
    document = gathered([], brokers(3))
    done = finished_one_by_one(document)
    assert done.homes == ()
    assert done.plan == without_assignment(make_plan(document, SETTINGS))


def test_what_is_missing_is_said() -> None:
    document = replace(scene(1), brokers=brokers(2, 500.0))
    with pytest.raises(UnallocatableError, match="bytes/s are missing"):
        finished_one_by_one(document)


@pytest.mark.parametrize("algorithm", ["cram-xor", "fbf", "bin-packing", "manual"])
def test_algorithms_that_do_not_cluster_by_common_publications_are_refused(algorithm: str) -> None:
    settings = AllocationSettings(algorithm=algorithm)
    assert not runs_on_spark(settings)
    with pytest.raises(UsageError, match=f"{algorithm} does not run on Spark"):
        check_settings(settings)


def test_settings_for_one_machine_are_refused() -> None:
    for settings in (AllocationSettings(stay=0.5), AllocationSettings(improve_steps=3)):
        assert not runs_on_spark(settings)
        with pytest.raises(UsageError, match="for plans on one machine"):
            check_settings(settings)
    assert runs_on_spark(AllocationSettings(algorithm="cram-intersect"))
