"""The thesis's three stock workloads: who is where, and what is really sunk."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from godwit.content.filters import Filter
from godwit.errors import UsageError
from godwit.workloads import allocation, balancing, placement
from godwit.workloads.allocation import heterogeneous_counts, homogeneous_counts
from godwit.workloads.balancing import BalancingSetup, balancing_timeline, balancing_workload
from godwit.workloads.placement import Mix, PlacementSetup, placement_workload
from godwit.workloads.stock_templates import UNSEEN
from godwit.workloads.stocks import Rating, StockMarket
from godwit.workloads.timelines import Join, RateStep
from godwit.workloads.workload import Workload

BROKERS = tuple(f"B{n:03d}" for n in range(127))


def balancing_of(setup: BalancingSetup, seed: int) -> tuple[Workload, Random]:
    random = Random(seed)
    market = StockMarket(random, symbols=setup.publishers)
    workload = balancing_workload(setup, market, random, publishers_at="B0", subscribers_at="B1")
    return workload, random


def placement_of(seed: int, mix: Mix, spread_over: int = 16) -> tuple[StockMarket, Workload]:
    random = Random(seed)
    setup = PlacementSetup(
        publishers=5, publications_per_min=(30.0, 300.0), subscribers_per_publisher=200,
        mix=mix, brokers_with_subscribers=spread_over,
    )  # fmt: skip
    market = StockMarket(random, symbols=5)
    return market, placement_workload(setup, market, BROKERS, random)


def _is_beyond(filter: Filter) -> bool:
    bounds = [p.operand for p in filter.predicates[2:]]
    return any(isinstance(bound, int) and abs(bound) >= UNSEEN for bound in bounds)


def played(workload: Workload) -> list[object]:
    return [workload.publishers, workload.subscribers, list(workload.sample(50))]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_balancing_has_the_zero_traffic_it_was_asked_for(seed: int) -> None:
    workload, _ = balancing_of(balancing.PLANETLAB, seed)
    quotes = list(workload.sample(1500))
    idle = [_is_beyond(subscriber.filter) for subscriber in workload.subscribers]

    assert {s.at for s in workload.subscribers} == {"B1"}
    assert {p.at for p in workload.publishers} == {"B0"}
    assert sum(idle) == 60  # Half of 120,
    assert 15 <= sum(idle[:60]) <= 45  # ... and not the first half.
    # Of the others some have thresholds that nothing passes in a hundred days.
    assert 0.50 <= balancing.measured(workload, quotes).zero_traffic_share <= 0.65


def test_balancing_timeline_joins_everybody_and_steps_the_rate() -> None:
    workload, random = balancing_of(balancing.PLANETLAB, 1)
    timeline = balancing_timeline(balancing.PLANETLAB, workload, random)

    assert sum(isinstance(step, Join) for step in timeline) == 120
    assert all(step.at_s <= 500.0 for step in timeline if isinstance(step, Join))
    assert [step.at_s for step in timeline if isinstance(step, RateStep)] == [1000.0] * 7


def test_the_random_mix_is_exact_and_spread_over_x_brokers() -> None:
    market, workload = placement_of(1, Mix.RANDOM)
    for symbol in market.symbols:
        mine = [s for s in workload.subscribers if f"-{symbol}-" in s.name]
        ratings = Counter(s.filter for s in mine)
        expected = {Rating.LOW: 140, Rating.MEDIUM: 50, Rating.HIGH: 10}
        assert ratings == {market.rated_filter(symbol, r): n for r, n in expected.items()}
        assert len({s.at for s in mine}) == 16
    assert all(30 <= p.publications_per_min <= 300 for p in workload.publishers)


def test_the_enterprise_has_one_database_and_no_end_user_beside_it() -> None:
    market, workload = placement_of(1, Mix.ENTERPRISE)
    for symbol in market.symbols:
        high = market.rated_filter(symbol, Rating.HIGH)
        mine = [s for s in workload.subscribers if f"-{symbol}-" in s.name]
        offices = [s.at for s in mine if s.filter == high]
        branches = {s.at for s in mine if s.filter != high}
        assert len(offices) == 10
        assert len(set(offices)) == 1
        assert len(branches) == 15
        assert not branches & set(offices)


@pytest.mark.parametrize("mix", Mix)
def test_with_one_broker_everybody_is_there(mix: Mix) -> None:
    market, workload = placement_of(1, mix, spread_over=1)
    for symbol in market.symbols:
        assert len({s.at for s in workload.subscribers if f"-{symbol}-" in s.name}) == 1


def test_subscribers_cannot_be_at_more_brokers_than_there_are() -> None:
    with pytest.raises(UsageError, match="it must be from 1 to 127"):
        placement_of(1, Mix.RANDOM, spread_over=128)


def test_subscription_counts_of_the_thesis() -> None:
    assert sum(homogeneous_counts(40, 200)) == 8000
    totals = [sum(heterogeneous_counts(40, most)) for most in (50, 100, 150, 200)]
    assert totals == pytest.approx([1025, 2050, 3075, 4100], abs=5)  # Rounded to whole ones.
    assert sum(heterogeneous_counts(40, 200)) == 4100  # E16
    assert (min(heterogeneous_counts(40, 200)), max(heterogeneous_counts(40, 200))) == (5, 200)


def test_capacities_of_the_thesis() -> None:
    found = allocation.heterogeneous_capacities(BROKERS[:80], Random(1))

    assert Counter(found.values()) == {1.0: 15, 0.5: 25, 0.25: 40}
    with pytest.raises(UsageError, match="for 80 or a multiple"):
        allocation.heterogeneous_capacities(BROKERS, Random(1))


@pytest.mark.parametrize("seed", [1, 2])
def test_allocation_subscriptions_sink_more_than_half_of_their_symbol(seed: int) -> None:
    random = Random(seed)
    market = StockMarket(random, symbols=10)
    counts = homogeneous_counts(10, 50)
    workload = allocation.allocation_workload(counts, market, BROKERS[:80], random)
    quotes = {symbol: [market.quote(symbol) for _ in range(100)] for symbol in market.symbols}
    found = allocation.measured(workload, quotes)

    assert len(workload.subscribers) == 500
    assert {p.publications_per_min for p in workload.publishers} == {70.0}
    # 40% sink all, 60% a half or so: prices wander, so it is not exactly 0.7.
    assert found.sunk.mean == pytest.approx(0.7, abs=0.1)
    assert found.covering_share == pytest.approx(1 - 10 / 500)  # Each symbol has a whole one.
    with pytest.raises(UsageError, match="9 counts for 10 symbols"):
        allocation.allocation_workload(counts[1:], market, BROKERS, random)


def test_the_same_seed_gives_the_same_workload() -> None:
    def allocated(seed: int) -> Workload:
        random = Random(seed)
        market = StockMarket(random, symbols=5)
        return allocation.allocation_workload((5,) * 5, market, BROKERS, random)

    assert played(allocated(1)) == played(allocated(1)) != played(allocated(2))
    one, two = placement_of(3, Mix.RANDOM)[1], placement_of(3, Mix.RANDOM)[1]
    assert played(one) == played(two)
    one, two = (balancing_of(balancing.PLANETLAB, 3)[0] for _ in range(2))
    assert played(one) == played(two)


def test_every_subscription_meets_an_advertisement_and_every_quote_conforms() -> None:
    for workload in (placement_of(1, Mix.RANDOM)[1], balancing_of(balancing.PLANETLAB, 1)[0]):
        announced = {p.name: p.advertisement for p in workload.publishers}
        for interest in {s.filter for s in workload.subscribers}:
            assert any(a.announces(interest) for a in announced.values())
        for publishing in workload.publications(until_s=5.0):
            assert announced[publishing.publisher].permits(publishing.record)


def test_the_setups_of_the_thesis() -> None:
    assert placement.CLUSTER.publishers * placement.CLUSTER.subscribers_per_publisher == 6000
    assert placement.PLANETLAB.publishers * placement.PLANETLAB.subscribers_per_publisher == 1600
    assert balancing.SIMULATION.rate_step_s == 3000.0
    assert balancing.GLOBAL_SIMULATION.rate_step_s == 8000.0
