"""Zipf popularity, social interest and matching ratios: statistics with stated tolerances."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from godwit.errors import UsageError
from godwit.workloads import matching_ratio, social, zipf
from godwit.workloads.matching_ratio import CS1, CS2, RatioSetup, ratio_workload
from godwit.workloads.social import SocialSetup, social_graph, social_workload
from godwit.workloads.workload import Workload
from godwit.workloads.workload_figures import covering_share
from godwit.workloads.zipf import (
    DT1,
    DT2,
    DT_C,
    ZipfSetup,
    expected_brokers,
    topics_for,
    zipf_weights,
    zipf_workload,
)

BROKERS = tuple(f"B{n:03d}" for n in range(120))
SMALL = ZipfSetup(brokers_per_publication=4.0, subscriptions=400)
SMALL_COVERING = ZipfSetup(brokers_per_publication=4.0, subscriptions=400, covering=True)


def builds(seed: int) -> list[Workload]:
    few = BROKERS[:20]
    return [
        zipf_workload(SMALL, few, Random(seed)),
        zipf_workload(SMALL_COVERING, few, Random(seed)),
        social_workload(SocialSetup(users=60), few, Random(seed)),
        ratio_workload(RatioSetup(matching_ratio=0.25, topics=10), few, Random(seed)),
    ]


def test_the_same_seed_gives_the_same_workload() -> None:
    for one, two, other in zip(builds(1), builds(1), builds(2), strict=True):
        assert (one.publishers, one.subscribers) == (two.publishers, two.subscribers)
        assert list(one.sample(30)) == list(two.sample(30))
        assert one.subscribers != other.subscribers


def test_every_subscription_meets_an_advertisement_and_every_record_conforms() -> None:
    for workload in builds(3):
        announced = {p.name: p.advertisement for p in workload.publishers}
        for interest in {s.filter for s in workload.subscribers}:
            assert any(a.announces(interest) for a in announced.values())
        for publishing in workload.publications(until_s=2.0):
            assert announced[publishing.publisher].permits(publishing.record)


def test_zipf_weights() -> None:
    assert zipf_weights(3, 1.0) == pytest.approx([6 / 11, 3 / 11, 2 / 11])
    assert zipf_weights(4, 0.0) == [0.25] * 4


def test_expected_brokers_of_a_tiny_dataset() -> None:
    # One topic, two brokers, one subscription that matches half of the time.
    tiny = ZipfSetup(brokers_per_publication=0.5, subscriptions=1)
    assert expected_brokers(tiny, 2, 1) == pytest.approx(0.5)
    assert topics_for(tiny, 2) == 1
    # Two subscriptions: each broker is missed with chance (1 - 1/4)^2.
    two = ZipfSetup(brokers_per_publication=0.5, subscriptions=2)
    assert expected_brokers(two, 2, 1) == pytest.approx(2 * (1 - 0.75**2))


@pytest.mark.parametrize(("setup", "wanted"), [(DT1, 9.7), (DT2, 28.7)], ids=["DT1", "DT2"])
def test_publiys_datasets_match_as_many_brokers_as_they_did(
    setup: ZipfSetup, wanted: float
) -> None:
    topics = topics_for(setup, len(BROKERS))
    assert expected_brokers(setup, len(BROKERS), topics) == pytest.approx(wanted, rel=0.01)

    workload = zipf_workload(setup, BROKERS, Random(1))
    assert zipf.measured(workload, publications=2500).mean == pytest.approx(wanted, rel=0.07)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("setup", [SMALL, SMALL_COVERING], ids=["plain", "covering"])
def test_a_dataset_is_as_dense_as_it_was_asked_to_be(setup: ZipfSetup, seed: int) -> None:
    workload = zipf_workload(setup, BROKERS[:20], Random(seed))

    assert zipf.measured(workload, publications=2000).mean == pytest.approx(4.0, rel=0.12)


@pytest.mark.parametrize("seed", range(3))
def test_covering_is_there_when_asked_for_and_only_then(seed: int) -> None:
    few = BROKERS[:20]
    plain = zipf_workload(SMALL, few, Random(seed))
    covering = zipf_workload(SMALL_COVERING, few, Random(seed))

    assert covering_share([s.filter for s in plain.subscribers]) == 0.0
    assert covering_share([s.filter for s in covering.subscribers]) > 0.8


def test_the_aggregate_rate_is_that_of_the_paper() -> None:
    workload = zipf_workload(SMALL, BROKERS[:20], Random(1))

    assert len(list(workload.publications(until_s=60.0))) == pytest.approx(3600, abs=20)
    assert DT_C.covering


def test_a_dataset_cannot_be_denser_than_its_subscriptions() -> None:
    with pytest.raises(UsageError, match="more than 0 and at most"):
        topics_for(ZipfSetup(brokers_per_publication=21.0), 20)
    with pytest.raises(UsageError, match="more than 0"):
        topics_for(ZipfSetup(brokers_per_publication=0.0), 20)


@pytest.mark.parametrize("seed", range(3))
def test_a_social_graph_has_hubs_and_triangles(seed: int) -> None:
    setup = SocialSetup(users=600)
    graph = social_graph(setup, Random(seed))
    found = social.measured_graph(graph)

    assert all(user in graph[friend] for user, friends in graph.items() for friend in friends)
    assert all(len(set(friends)) == len(friends) for friends in graph.values())
    assert found.friends.mean == pytest.approx(2 * setup.friends_of_newcomer, rel=0.02)
    assert found.friends.most > 5 * found.friends.mean
    assert found.clustering > 0.2  # A random graph of this size has 8 / 600.


def test_the_clustering_of_a_tiny_graph() -> None:
    # A triangle 0 1 2, and 3 who knows only 0: 1/3, 1, 1 and 0.
    found = social.measured_graph({0: [1, 2, 3], 1: [0, 2], 2: [0, 1], 3: [0]})

    assert found.clustering == pytest.approx((1 / 3 + 1 + 1 + 0) / 4)
    assert (found.friends.mean, found.friends.most) == (2, 3)


def test_readers_are_where_their_friends_posts_must_go() -> None:
    workload = social_workload(SocialSetup(users=100), BROKERS, Random(1))
    home = {p.subject: p.at for p in workload.publishers}
    for subscriber in workload.subscribers:
        reader = subscriber.name.split("-")[1]
        assert subscriber.at == home[reader]
    readers = Counter(s.filter.constraints["author"].only_value for s in workload.subscribers)
    for author in workload.publishers:  # Who has more friends posts more.
        share = readers[author.subject] / len(workload.subscribers)
        assert author.publications_per_min == pytest.approx(3600 * share)
    assert sum(p.publications_per_min for p in workload.publishers) == pytest.approx(3600)


def test_locality_brings_friends_together() -> None:
    apart, together = (
        social.measured(
            social_workload(SocialSetup(users=300, locality=locality), BROKERS, Random(1)),
            publications=500,
        ).mean
        for locality in (0.0, 0.9)
    )
    assert together < 0.7 * apart


def test_a_graph_needs_enough_users() -> None:
    with pytest.raises(UsageError, match="are impossible"):
        social_graph(SocialSetup(users=4), Random(1))


@pytest.mark.parametrize("setup", [*CS1, *CS2], ids=lambda s: f"{s.matching_ratio:.0%}")
def test_every_event_has_its_share_of_the_brokers(setup: RatioSetup) -> None:
    brokers = BROKERS[:100]
    found = matching_ratio.measured(ratio_workload(setup, brokers, Random(1)), publications=100)

    assert found.brokers_per_publication.least == found.brokers_per_publication.most
    assert found.brokers_per_publication.mean == round(100 * setup.matching_ratio)
    assert found.subscriptions_per_broker.mean == pytest.approx(100 * setup.matching_ratio)
    # The first ten of a hundred Zipf shares: H(10) / H(100) = 0.565.
    expected = 0.565 if setup.publisher_exponent else 0.1
    assert found.busiest_tenth_share == pytest.approx(expected, abs=0.001)


def test_a_ratio_is_a_ratio() -> None:
    with pytest.raises(UsageError, match="from 0 to 1"):
        ratio_workload(RatioSetup(matching_ratio=1.5), BROKERS, Random(1))
