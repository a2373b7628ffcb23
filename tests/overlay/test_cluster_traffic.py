"""The number of clusters with the least traffic: test vector 12, and the equation by search."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.errors import UsageError
from godwit.overlay.clusters.cluster_traffic import ClusterCounts, ClusterLoad, measured

VECTOR_12 = ClusterLoad(brokers=100, publications=100, subscriptions=50, matching_ratio=0.5)

loads = st.builds(
    ClusterLoad,
    brokers=st.integers(1, 200),
    publications=st.floats(0, 1_000),
    subscriptions=st.floats(0, 1_000),
    matching_ratio=st.floats(0, 1),
)


def test_vector_12() -> None:
    assert VECTOR_12.optimum == 10
    assert VECTOR_12.best_clusters == 10
    assert VECTOR_12.traffic(10) == 5_850


def test_more_popular_means_more_clusters() -> None:
    assert replace(VECTOR_12, subscriptions=200).optimum > VECTOR_12.optimum
    assert replace(VECTOR_12, matching_ratio=0.9).optimum > VECTOR_12.optimum
    assert replace(VECTOR_12, publications=400).optimum < VECTOR_12.optimum


def test_if_all_brokers_get_everything_each_is_a_cluster() -> None:
    assert replace(VECTOR_12, matching_ratio=1.0).best_clusters == 100
    assert replace(VECTOR_12, publications=0.0).best_clusters == 100


def test_without_subscriptions_there_is_one_cluster() -> None:
    assert replace(VECTOR_12, subscriptions=0.0).best_clusters == 1


@given(loads)
def test_no_other_number_has_less_traffic(load: ClusterLoad) -> None:
    best = load.messages(load.best_clusters)
    assert all(best <= load.messages(m) + 1e-6 for m in range(1, load.brokers + 1))


@given(loads)
def test_clusters_of_the_same_size_are_those_of_the_equation(load: ClusterLoad) -> None:
    for clusters in range(1, load.brokers + 1):
        found, equation = load.messages(clusters), load.traffic(clusters)
        if load.brokers % clusters:
            assert found >= equation - 1e-6, "subscriptions go to more mates"
        else:
            assert found == pytest.approx(equation, abs=1e-6)


def test_a_number_beside_the_optimum_can_divide_the_brokers_better() -> None:
    """Measured by `clusters-optimum`: 28,213 messages with 20 clusters, 28,378 with 22."""
    load = ClusterLoad(60, 600.0, 2_400.0, 0.5)
    assert load.optimum == pytest.approx(21.9, abs=0.05)
    assert load.best_clusters == 20
    assert load.messages(20) == 28_200
    assert load.messages(22) == 28_320


def test_a_load_that_cannot_be_is_refused() -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        replace(VECTOR_12, matching_ratio=1.5)
    with pytest.raises(UsageError, match="negative"):
        replace(VECTOR_12, publications=-1)


def test_what_brokers_count_gives_the_load() -> None:
    """Two of four brokers publish; each publication interests two of them, on average."""
    counts = [
        ClusterCounts(published=6, reached=8, sent=1, standing=3),
        ClusterCounts(published=2, reached=4, sent=0, standing=0),
        ClusterCounts(reached=4),
        ClusterCounts(),
    ]
    assert measured(counts) == ClusterLoad(4, 8.0, 4.0, 0.5)
    assert measured([ClusterCounts()]) == ClusterLoad(1, 0.0, 0.0, 0.0)


def test_what_came_since_an_earlier_look() -> None:
    before = ClusterCounts(published=6, reached=8, sent=4, standing=3)
    now = ClusterCounts(published=9, reached=8, sent=5, standing=2)
    assert now.since(before) == ClusterCounts(published=3, reached=0, sent=1, standing=2)
    restarted = ClusterCounts(published=2, reached=9, sent=5, standing=2)
    assert restarted.since(before) == restarted
    assert now.since(None) == now
