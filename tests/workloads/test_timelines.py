"""Joins, leaves and steps of the rate: counted by hand, and as the thesis states them."""

from __future__ import annotations

from random import Random

import pytest

from godwit.content.filters import Filter
from godwit.errors import UsageError
from godwit.workloads.clients import Publisher, Subscriber
from godwit.workloads.timelines import (
    Join,
    Leave,
    RateStep,
    Timeline,
    aggregate_rate_per_min,
    attendance,
    churn,
    joins,
    merged,
    rate_steps,
)

ANY = Filter.parse("class = 'STOCK'")
EDGES = ("B1", "B2", "B3", "B4")


def who(name: str, at: str = "B1") -> Subscriber:
    return Subscriber(name=name, at=at, filter=ANY)


def churned(seed: int, *, grouped: bool, minutes: int = 40) -> Timeline:
    return churn(lambda _: ANY, EDGES, Random(seed), minutes=minutes, grouped=grouped)


def test_attendance_of_a_tiny_timeline() -> None:
    steps = (
        Join(1.0, who("a")), Join(2.0, who("b", "B2")), Leave(5.0, "a"), Join(6.0, who("c")),
        RateStep(7.0, "p", 60.0),
    )  # fmt: skip
    found = attendance(steps)

    assert (found.joins, found.leaves, found.attached_most, found.attached_at_end) == (3, 1, 2, 2)
    assert found.stay_mean_s == 4.0
    assert found.joins_by_broker == {"B1": 2, "B2": 1}


def test_everybody_joins_once_in_the_time_given() -> None:
    steps = joins([who(f"s{n}") for n in range(2000)], Random(1), within_s=1010.0)

    assert {step.subscriber.name for step in steps} == {f"s{n}" for n in range(2000)}
    times_s = [step.at_s for step in steps]
    assert times_s == sorted(times_s)
    assert 0 <= times_s[0] < times_s[-1] <= 1010
    assert sum(times_s) / 2000 == pytest.approx(505, rel=0.05)


def test_half_of_the_publishers_double_and_the_aggregate_rises_by_half() -> None:
    rates = {f"p{n}": 30.0 for n in range(60)}
    steps = rate_steps(rates, Random(1), at_s=1500.0)

    assert len(steps) == 30
    assert aggregate_rate_per_min(rates, steps, at_s=1499.0) == 1800
    assert aggregate_rate_per_min(rates, steps, at_s=1500.0) == 2700
    assert steps != rate_steps(rates, Random(2), at_s=1500.0)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("grouped", [True, False])
def test_churn_keeps_about_630_subscribers_attached(seed: int, *, grouped: bool) -> None:
    found = attendance(churned(seed, grouped=grouped))

    assert found.joins == 60 * 40
    assert found.stay_mean_s == pytest.approx(10.5 * 60, rel=0.03)
    assert found.attached_at_end == pytest.approx(630, rel=0.07)
    assert set(found.joins_by_broker) == set(EDGES)


def test_who_leaves_has_joined_and_stayed_as_long_as_the_thesis_says() -> None:
    since: dict[str, float] = {}
    for step in churned(4, grouped=False):
        if isinstance(step, Join):
            assert step.subscriber.name not in since
            since[step.subscriber.name] = step.at_s
        elif isinstance(step, Leave):
            assert 7 * 60 <= step.at_s - since[step.subscriber] <= 14 * 60


def test_grouped_joins_of_a_minute_go_to_one_edge_and_individual_ones_do_not() -> None:
    def edges_of_minutes(*, grouped: bool) -> list[set[str]]:
        found: list[set[str]] = [set() for _ in range(10)]
        for step in churned(1, grouped=grouped, minutes=10):
            if isinstance(step, Join):
                found[int(step.at_s // 60)].add(step.subscriber.at)
        return found

    assert all(len(edges) == 1 for edges in edges_of_minutes(grouped=True))
    assert len(set.union(*edges_of_minutes(grouped=True))) > 1
    assert all(len(edges) == 4 for edges in edges_of_minutes(grouped=False))


def test_the_same_seed_gives_the_same_churn() -> None:
    assert churned(5, grouped=True) == churned(5, grouped=True)
    assert churned(5, grouped=True) != churned(6, grouped=True)


def test_merging_sorts_by_time() -> None:
    early, late = Leave(1.0, "a"), Leave(2.0, "b")
    same = RateStep(2.0, "p", 1.0)

    assert merged([late], [early, same]) == (early, late, same)


def test_a_rate_is_more_than_nothing() -> None:
    with pytest.raises(UsageError, match="p publishes 0 times a minute"):
        RateStep(1.0, "p", 0)
    with pytest.raises(UsageError, match="p publishes -1 times a minute"):
        Publisher(name="p", at="B1", advertisement=ANY, subject="x", publications_per_min=-1)
    with pytest.raises(UsageError, match="edge"):
        churn(lambda _: ANY, (), Random(1), minutes=1, grouped=True)
