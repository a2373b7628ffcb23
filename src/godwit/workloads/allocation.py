"""The resource-allocation workloads of the thesis (7.3.2): setups RS1 to RS4.

Each publisher has one stock and publishes 70 quotes a minute.  40% of the subscriptions want the
whole stock; 60% add one inequality, with a value the stock has shown (RS4).

homogeneous     RS1: 40 publishers, 50 to 200 subscriptions each, 80 equal brokers
                RS3: 72 publishers at 400 brokers, 100 at 1,000; 225 subscriptions each
heterogeneous   RS2: the i-th of 40 publishers has Ns i / 40 subscriptions.  The thesis prints
                Ns / i, which sums up to 856 and not to its 4,100 for Ns = 200 (erratum E16).
                Of 80 brokers 15 have all, 25 half and 40 a quarter of the output capacity.

Chosen where the thesis is silent: publishers and subscribers start at random brokers (its MANUAL
start); which brokers are weak is drawn at random.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from godwit.content.values import Record
from godwit.errors import UsageError
from godwit.workloads.clients import Subscriber
from godwit.workloads.stock_publishers import quotes_of, stock_publishers
from godwit.workloads.stocks import Market
from godwit.workloads.workload import Workload
from godwit.workloads.workload_figures import Spread, covering_share, share_sunk, spread

PUBLICATIONS_PER_MIN = 70.0
#: RS2: how many of 80 brokers have which part of the output capacity.
CAPACITIES = ((15, 1.00), (25, 0.50), (40, 0.25))


def homogeneous_counts(publishers: int, subscriptions: int) -> tuple[int, ...]:
    """RS1 and RS3: as many subscriptions for each publisher."""
    return (subscriptions,) * publishers


def heterogeneous_counts(publishers: int, subscriptions_most: int) -> tuple[int, ...]:
    """RS2: the i-th publisher has Ns i / n subscriptions, the last one Ns."""
    return tuple(round(subscriptions_most * i / publishers) for i in range(1, publishers + 1))


def heterogeneous_capacities(brokers: Sequence[str], random: Random) -> Mapping[str, float]:
    """RS2: the part of the full output capacity that each broker has."""
    total = sum(count for count, _ in CAPACITIES)
    if len(brokers) % total:
        raise UsageError(f"{len(brokers)} brokers; the shares of RS2 are for {total} or a multiple")
    shares = [share for count, share in CAPACITIES for _ in range(count * len(brokers) // total)]
    random.shuffle(shares)
    return dict(zip(brokers, shares, strict=True))


def allocation_workload(
    counts: Sequence[int], market: Market, brokers: Sequence[str], random: Random
) -> Workload:
    """RS4: `counts` says how many subscriptions there are for each symbol of the market."""
    if len(counts) != len(market.symbols):
        raise UsageError(f"{len(counts)} counts for {len(market.symbols)} symbols")
    publishers = stock_publishers(
        market, lambda: random.choice(brokers), lambda: PUBLICATIONS_PER_MIN, random
    )
    subscribers = tuple(
        Subscriber(
            name=f"subscriber-{symbol}-{number}",
            at=random.choice(brokers),
            filter=market.allocation_filter(symbol),
        )
        for symbol, count in zip(market.symbols, counts, strict=True)
        for number in range(count)
    )
    return Workload(publishers=publishers, subscribers=subscribers, content=quotes_of(market))


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationMeasures:
    covering_share: float
    sunk: Spread
    """The part of its own symbol's quotes that a subscription sinks."""


def measured(
    workload: Workload, records_by_symbol: Mapping[str, Sequence[Record]]
) -> AllocationMeasures:
    """What the subscriptions really sink of their symbol's quotes, and how many are covered."""
    sunk = (
        share_sunk(subscriber.filter, records_by_symbol[_symbol(subscriber)])
        for subscriber in workload.subscribers
    )
    return AllocationMeasures(
        covering_share=covering_share([s.filter for s in workload.subscribers]),
        sunk=spread(sunk),
    )


def _symbol(subscriber: Subscriber) -> str:
    symbol = subscriber.filter.constraints["symbol"].only_value
    assert isinstance(symbol, str), "RS4 names the symbol in every subscription"
    return symbol
