"""The load-balancing workloads of the thesis (7.1): setups LS2 and LS6, with churn as in LS4.

All publishers are at one broker, one symbol each; all subscribers join at another, at random
times; a share of them sinks nothing; at a given time half of the publishers double their rate.

publishers at     LS1: B0, the head of the star.  LS6: B10, the head of the first cluster.
subscribers at    LS1: B1.  LS6: B11.  Both are arguments.

Chosen where the thesis is silent: a subscriber's symbol is one that is published (the thesis
draws among "the known stock symbols"; then most subscribers of the PlanetLab setup, with 15 of
100 symbols published, would sink nothing, and not the 50% it states).  The zero-traffic share is
exact, and spread over the subscribers at random.  Those beyond it draw from LS3's templates, of
which some sink nothing as well (`high > v` with the highest v): `measured` counts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from godwit.content.filters import Filter
from godwit.content.values import Record
from godwit.workloads.clients import Subscriber
from godwit.workloads.stock_publishers import quotes_of, stock_publishers
from godwit.workloads.stocks import Market
from godwit.workloads.timelines import Timeline, joins, merged, rate_steps
from godwit.workloads.workload import Workload
from godwit.workloads.workload_figures import Spread, share_sunk, spread, zero_traffic_share


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancingSetup:
    """A row of the thesis's table 7.3."""

    publishers: int
    publications_per_min: float = 30.0
    rate_step_s: float
    subscribers: int
    zero_traffic_share: float
    joining_s: float


PLANETLAB = BalancingSetup(
    publishers=15, rate_step_s=1000.0, subscribers=120, zero_traffic_share=0.50, joining_s=500.0
)
CLUSTER = BalancingSetup(
    publishers=60, rate_step_s=1500.0, subscribers=600, zero_traffic_share=0.50, joining_s=600.0
)
SIMULATION = BalancingSetup(
    publishers=40, rate_step_s=3000.0, subscribers=2000, zero_traffic_share=0.25, joining_s=1010.0
)
#: LS6: the same clients, but the simulation's step comes later.
GLOBAL_SIMULATION = BalancingSetup(
    publishers=40, rate_step_s=8000.0, subscribers=2000, zero_traffic_share=0.25, joining_s=1010.0
)


def balancing_workload(
    setup: BalancingSetup,
    market: Market,
    random: Random,
    *,
    publishers_at: str,
    subscribers_at: str,
) -> Workload:
    """LS2.  The market's symbols are what is published: give it `setup.publishers` of them."""
    publishers = stock_publishers(
        market, lambda: publishers_at, lambda: setup.publications_per_min, random
    )
    idle = round(setup.zero_traffic_share * setup.subscribers)
    is_idle = [number < idle for number in range(setup.subscribers)]
    random.shuffle(is_idle)
    subscribers = tuple(
        Subscriber(
            name=f"subscriber-{number}",
            at=subscribers_at,
            filter=balancing_filter(market, random, zero_traffic=nothing),
        )
        for number, nothing in enumerate(is_idle)
    )
    return Workload(publishers=publishers, subscribers=subscribers, content=quotes_of(market))


def balancing_filter(market: Market, random: Random, *, zero_traffic: bool) -> Filter:
    """The filter of one subscriber; also for the subscribers of churn."""
    symbol = random.choice(market.symbols)
    return market.zero_traffic_filter(symbol) if zero_traffic else market.template_filter(symbol)


def balancing_timeline(setup: BalancingSetup, workload: Workload, random: Random) -> Timeline:
    """The joins and the step of the rate."""
    rates = {p.name: p.publications_per_min for p in workload.publishers}
    return merged(
        joins(workload.subscribers, random, within_s=setup.joining_s),
        rate_steps(rates, random, at_s=setup.rate_step_s),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancingMeasures:
    zero_traffic_share: float
    sunk: Spread
    """The part of all publications that a subscriber sinks."""


def measured(workload: Workload, records: Sequence[Record]) -> BalancingMeasures:
    """What the subscribers really sink of `records`, which `workload.sample` gives."""
    return BalancingMeasures(
        zero_traffic_share=zero_traffic_share(workload.subscribers, records),
        sunk=spread(share_sunk(s.filter, records) for s in workload.subscribers),
    )
