"""Reports become arrays: who holds what, where, at which rate."""

from __future__ import annotations

import pytest

from godwit.api.coordinator_api import Balance, LoadReport
from godwit.coordinator.situation import Situation, situation

K, L = 70, 80


Given = tuple[str, dict[int, float], dict[str, list[int]]]


def reports(*given: Given) -> list[LoadReport]:
    return [LoadReport(broker, 0.0, 0.0, rates, held) for broker, rates, held in given]


def holdings(found: Situation) -> dict[str, tuple[str, float]]:
    """Where each subscriber is, and what it is sent."""
    weights = found.subscribers.weights
    return {
        client: (found.brokers[found.home[i]], weights[i]) for i, client in enumerate(found.clients)
    }


def test_the_two_subscribers_of_test_vector_13() -> None:
    found = situation(reports(("B1", {K: 2.0, L: 3.0}, {"a": [K], "b": [K, L]})), {})
    assert found.load_of == {"B1": 12.0}
    assert (found.be_of, found.subscribers_of) == ({"B1": 2}, {"B1": 2})
    assert found.balance == Balance(
        brokers=1, subscribers=2, fe_subscriptions=3, be_subscriptions=2, sharing=1.5,
        cov=0.0, mean_load=12.0, maximum_load=12.0,
    )  # fmt: skip


def test_be_subscriptions_of_several_brokers_count_once() -> None:
    found = situation(reports(("B2", {K: 2.0}, {"b": [K]}), ("B1", {K: 2.0}, {"a": [K]})), {})
    assert found.brokers == ("B1", "B2")
    assert found.load_of == {"B1": 4.0, "B2": 4.0}
    assert (found.balance.be_subscriptions, found.balance.sharing) == (1, 2.0)


@pytest.mark.parametrize(
    ("first", "second", "known", "rate"),
    [
        pytest.param({K: 5.0}, {K: 1.0}, {}, 5.0, id="who has held it for longer knows better"),
        pytest.param({K: 1.0}, {K: 5.0}, {K: 9.0}, 5.0, id="reports go before what was known"),
        pytest.param({}, {}, {K: 4.0}, 4.0, id="what nobody says was known"),
        pytest.param({}, {}, {}, 0.0, id="what nobody knows is nothing"),
    ],
)
def test_rates(
    first: dict[int, float], second: dict[int, float], known: dict[int, float], rate: float
) -> None:
    found = situation(reports(("B1", first, {"a": [K]}), ("B2", second, {"b": [K]})), known)
    assert holdings(found) == {"a": ("B1", rate), "b": ("B2", rate)}


def test_who_is_at_two_brokers_is_where_the_later_report_says() -> None:
    older: Given = "B2", {K: 2.0, L: 1.0}, {"a": [K]}
    newer: Given = "B1", {}, {"a": [L]}
    assert holdings(situation(reports(older, newer), {})) == {"a": ("B1", 1.0)}
    assert holdings(situation(reports(newer, older), {})) == {"a": ("B2", 2.0)}


def test_what_is_said_twice_counts_once() -> None:
    found = situation(reports(("B1", {K: 2.0}, {"a": [K, K], "idle": []})), {})
    assert holdings(found) == {"a": ("B1", 2.0), "idle": ("B1", 0.0)}


def test_nobody() -> None:
    nothing = situation([], {})
    assert (nothing.load_of, nothing.be_of, nothing.subscribers_of) == ({}, {}, {})
    assert nothing.balance == Balance()
    alone = situation(reports(("B1", {}, {})), {})
    assert (alone.load_of, alone.balance.sharing) == ({"B1": 0.0}, 0.0)
