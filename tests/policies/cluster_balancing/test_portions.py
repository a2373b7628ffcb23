"""Which work goes to which mate: tables of cases, and limits for random ones."""

from __future__ import annotations

from random import Random

import pytest

from godwit.broker.routing import RouteCluster, RouteRing
from godwit.policies.cluster_balancing.portions import (
    ClusterWork,
    Offer,
    RingWork,
    hand_over_clusters,
    hand_over_rings,
)

NINE = tuple(range(1, 10))


@pytest.mark.parametrize(
    ("excess", "amounts", "routes", "left"),
    [
        pytest.param(0, {"Q": 150}, [], 0, id="no excess, nothing is handed over"),
        pytest.param(
            60, {"Q": 150}, [RouteRing("p", (1, 2, 3, 4), "Q")], 0, id="the copy for the helper"
        ),
        pytest.param(
            60,
            {"Q": 60, "R": 70},
            [RouteRing("p", (1, 2), "Q"), RouteRing("p", (3, 4), "R")],
            20,
            id="two helpers need two copies",
        ),
        pytest.param(60, {"Q": 59}, [], 60, id="a helper for one cluster saves nothing"),
        pytest.param(
            1000, {"Q": 900}, [RouteRing("p", NINE, "Q")], 840, id="not more than there is"
        ),
    ],
)
def test_ring_work(
    excess: float, amounts: dict[str, float], routes: list[RouteRing], left: float
) -> None:
    work = [RingWork("p", 20.0, NINE)]
    offers = [Offer(name, 0.0, amount) for name, amount in amounts.items()]
    assert hand_over_rings(excess, work, offers) == (left, routes)


def test_a_helper_that_has_the_publications_already_costs_no_further_copy() -> None:
    work = [RingWork("p", 20.0, (5, 6), frozenset({"Q"}))]
    offer = Offer("Q", 100.0, 20.0)
    assert hand_over_rings(15.0, work, [offer]) == (-5.0, [RouteRing("p", (5,), "Q")])
    assert offer.left == 0.0


def test_the_least_loaded_helps_first() -> None:
    works = [ClusterWork("p", 10.0, 40.0)]
    offers = [Offer("Q", 90.0, 60.0), Offer("R", 10.0, 60.0)]
    assert hand_over_clusters(5.0, works, offers) == (-25.0, [RouteCluster("p", "R")])


def test_the_smallest_publisher_that_is_enough_is_handed_over() -> None:
    works = [ClusterWork(f"p{size}", 1.0, size + 1.0) for size in (5, 20, 50)]
    left, routes = hand_over_clusters(12.0, works, [Offer("Q", 0.0, 500.0)])
    assert (left, routes) == (-8.0, [RouteCluster("p20", "Q")])


def test_what_saves_nothing_stays() -> None:
    works = [ClusterWork("p", 10.0, 10.0)]
    assert hand_over_clusters(5.0, works, [Offer("Q", 0.0, 500.0)]) == (5.0, [])


def test_nothing_exceeds_what_was_accepted() -> None:
    for seed in range(300):
        random = Random(seed)
        rings = [
            RingWork(f"p{i}", random.uniform(0, 30), tuple(range(random.randint(0, 9))))
            for i in range(random.randint(0, 4))
        ]
        clusters = [
            ClusterWork(f"c{i}", random.uniform(0, 10), random.uniform(0, 60))
            for i in range(random.randint(0, 9))
        ]
        offers = [Offer(f"Q{i}", random.uniform(0, 150), random.uniform(0, 150)) for i in range(4)]
        before = excess = random.uniform(-10, 300)
        excess, ring_routes = hand_over_rings(excess, rings, offers)
        excess, cluster_routes = hand_over_clusters(excess, clusters, offers)
        assert all(offer.left >= -1e-9 for offer in offers), f"seed {seed}: {offers}"
        assert excess <= before, f"seed {seed}"
        handed = [(r.publisher, c) for r in ring_routes for c in r.clusters]
        assert len(handed) == len(set(handed)), f"seed {seed}: a cluster twice"
        assert len({r.publisher for r in cluster_routes}) == len(cluster_routes), f"seed {seed}"
