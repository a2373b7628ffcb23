"""The publisher-placement workloads of the thesis (7.2.1): setups GS1 to GS3.

random       70% of a publisher's subscribers are low-rated (they sink about 10% of its quotes),
             25% medium-rated (50%), 5% high-rated (all), each at one of X brokers at random
enterprise   5% are high-rated, all at one broker; 95% low-rated, at random over X - 1 others

Chosen where the thesis is silent: each publisher has its own X brokers, drawn at random ("the
database at the main office" of one publisher is not that of another).  A publisher sits at a
random broker and its rate is uniform in the range given.  Shares are exact, rounded to whole
subscribers, with the low-rated taking the rest.  With X = 1 the enterprise's low-rated have no
other broker and sit at the only one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random

from godwit.errors import UsageError
from godwit.workloads.clients import Subscriber
from godwit.workloads.stock_publishers import quotes_of, stock_publishers
from godwit.workloads.stocks import Market, Rating
from godwit.workloads.workload import Workload
from godwit.workloads.workload_figures import Spread, share_sunk, spread


class Mix(Enum):
    """How a publisher's subscribers are rated and where they sit."""

    RANDOM = "random"
    ENTERPRISE = "enterprise"


SHARES: Mapping[Mix, Mapping[Rating, float]] = {
    Mix.RANDOM: {Rating.LOW: 0.70, Rating.MEDIUM: 0.25, Rating.HIGH: 0.05},
    Mix.ENTERPRISE: {Rating.LOW: 0.95, Rating.MEDIUM: 0.0, Rating.HIGH: 0.05},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementSetup:
    """A column of GS1.  The market's symbols are the publishers."""

    publishers: int
    publications_per_min: tuple[float, float]
    subscribers_per_publisher: int
    mix: Mix = Mix.RANDOM
    brokers_with_subscribers: int = 16
    """Number of brokers that the subscribers of one publisher are spread over (the thesis's X)."""


PLANETLAB = PlacementSetup(
    publishers=20, publications_per_min=(10.0, 40.0), subscribers_per_publisher=80
)
CLUSTER = PlacementSetup(
    publishers=30, publications_per_min=(30.0, 300.0), subscribers_per_publisher=200
)


def placement_workload(
    setup: PlacementSetup, market: Market, brokers: Sequence[str], random: Random
) -> Workload:
    """GS2 or GS3, by `setup.mix`."""
    if not 1 <= setup.brokers_with_subscribers <= len(brokers):
        raise UsageError(
            f"subscribers at {setup.brokers_with_subscribers} brokers;"
            f" it must be from 1 to {len(brokers)}"
        )
    publishers = stock_publishers(
        market,
        lambda: random.choice(brokers),
        lambda: random.uniform(*setup.publications_per_min),
        random,
    )
    subscribers = tuple(
        subscriber
        for symbol in market.symbols
        for subscriber in _subscribers(setup, market, symbol, brokers, random)
    )
    return Workload(publishers=publishers, subscribers=subscribers, content=quotes_of(market))


def _subscribers(
    setup: PlacementSetup, market: Market, symbol: str, brokers: Sequence[str], random: Random
) -> Iterator[Subscriber]:
    homes = random.sample(brokers, setup.brokers_with_subscribers)
    ratings = _ratings(setup)
    random.shuffle(ratings)
    for number, rating in enumerate(ratings):
        candidates = homes
        if setup.mix is Mix.ENTERPRISE:
            candidates = homes[:1] if rating is Rating.HIGH else homes[1:] or homes
        yield Subscriber(
            name=f"subscriber-{symbol}-{number}",
            at=random.choice(candidates),
            filter=market.rated_filter(symbol, rating),
        )


def _ratings(setup: PlacementSetup) -> list[Rating]:
    shares = SHARES[setup.mix]
    total = setup.subscribers_per_publisher
    ratings = [
        rating
        for rating in (Rating.MEDIUM, Rating.HIGH)
        for _ in range(round(shares[rating] * total))
    ]
    return ratings + [Rating.LOW] * (total - len(ratings))


def sunk_by_rating(market: Market, *, quotes: int) -> dict[Rating, Spread]:
    """What the ratings really sink of the next `quotes` quotes, symbol by symbol."""
    shares: dict[Rating, list[float]] = {rating: [] for rating in Rating}
    for symbol in market.symbols:
        records = [market.quote(symbol) for _ in range(quotes)]
        for rating in Rating:
            shares[rating].append(share_sunk(market.rated_filter(symbol, rating), records))
    return {rating: spread(of_rating) for rating, of_rating in shares.items()}
