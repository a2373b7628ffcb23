"""The publisher-placement setup of the thesis (7.2.1, setups GS1 and GS2) as a declared value.

Publishers sit at random brokers, one symbol each.  Each publisher's subscribers are spread over a
number of brokers drawn for it; 70% of them sink about a tenth of its quotes, 25% half, 5% all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from godwit.content.values import Value
from godwit.overlay.topology import balanced_tree
from godwit.simulation.clients import SimulatedClient
from godwit.simulation.observers import Observer
from godwit.simulation.resources import (
    DEFAULT_LINK,
    DEFAULT_RESOURCES,
    BrokerResources,
    LinkOptions,
)
from godwit.simulation.simulator import Simulator
from godwit.simulation.stocks import Rating, StockMarket

RATINGS = (Rating.LOW, Rating.MEDIUM, Rating.HIGH)
RATING_WEIGHTS = (70, 25, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class StockScenario:
    brokers: int = 127
    fanout: int = 2
    publishers: int = 30
    publications_per_min: tuple[float, float] = (30.0, 300.0)
    subscribers_per_publisher: int = 200
    brokers_with_subscribers: int = 16
    """Over how many brokers the subscribers of one publisher are spread (the thesis's X)."""

    joining_s: float = 60.0
    """Subscribers arrive one after the other in this time; then publishing starts."""

    duration_s: float = 18 * 60.0
    resources: BrokerResources = DEFAULT_RESOURCES
    link: LinkOptions = DEFAULT_LINK

    def build(
        self, *, seed: int, observers: tuple[Observer, ...] = (), check: bool = True
    ) -> Simulator:
        """A simulator with everything planned; run it until `duration_s` and a little longer."""
        random = Random(seed)
        simulator = Simulator(
            balanced_tree(self.brokers, fanout=self.fanout),
            seed=seed,
            resources=self.resources,
            link=self.link,
            observers=observers,
            check=check,
        )
        market = StockMarket(random, symbols=self.publishers)
        for symbol in market.symbols:
            self._add_publisher(simulator, market, symbol, random)
            self._add_subscribers(simulator, market, symbol, random)
        return simulator

    def _add_publisher(
        self, simulator: Simulator, market: StockMarket, symbol: str, random: Random
    ) -> None:
        at = random.choice(simulator.topology.brokers)
        client = simulator.client(f"publisher-{symbol}", at=at)
        period_s = 60.0 / random.uniform(*self.publications_per_min)
        simulator.at(0.0, self._publish, client, market, symbol, period_s, random.random())

    def _publish(
        self,
        client: SimulatedClient,
        market: StockMarket,
        symbol: str,
        period_s: float,
        phase: float,
    ) -> None:
        advertisement = client.advertise(market.advertisement(symbol))
        first_s = self.joining_s + phase * period_s
        client.publish_all(advertisement, self._quotes(market, symbol, first_s, period_s))

    def _quotes(
        self, market: StockMarket, symbol: str, first_s: float, period_s: float
    ) -> Iterator[tuple[float, dict[str, Value]]]:
        quotes = int((self.duration_s - first_s) / period_s) + 1
        for number in range(max(quotes, 0)):
            yield first_s + number * period_s, market.quote(symbol)

    def _add_subscribers(
        self, simulator: Simulator, market: StockMarket, symbol: str, random: Random
    ) -> None:
        brokers = simulator.topology.brokers
        homes = random.sample(brokers, min(self.brokers_with_subscribers, len(brokers)))
        for number in range(self.subscribers_per_publisher):
            client = simulator.client(f"subscriber-{symbol}-{number}", at=random.choice(homes))
            rating = random.choices(RATINGS, RATING_WEIGHTS)[0]
            filter = market.rated_filter(symbol, rating)
            simulator.at(random.uniform(0.0, self.joining_s), client.subscribe, filter)
