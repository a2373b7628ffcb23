"""The publisher-placement setup of the thesis (7.2.1, setups GS1 and GS2) as a declared value.

Publishers sit at random brokers, one symbol each.  Each publisher's subscribers are spread over a
number of brokers drawn for it; 70% of them sink about a tenth of its quotes, 25% half, 5% all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from godwit.content.filters import Filter
from godwit.content.values import Value
from godwit.overlay.topology import Topology, balanced_tree
from godwit.simulation.clients import SimulatedClient
from godwit.simulation.observers import Observer
from godwit.simulation.resources import (
    DEFAULT_LINK,
    DEFAULT_RESOURCES,
    BrokerResources,
    LinkOptions,
)
from godwit.simulation.simulator import Simulator
from godwit.workloads.stocks import Rating, StockMarket

RATINGS = (Rating.LOW, Rating.MEDIUM, Rating.HIGH)
RATING_WEIGHTS = (70, 25, 5)


@dataclass(frozen=True, slots=True)
class StockPublisher:
    name: str
    at: str
    symbol: str
    first_s: float
    period_s: float


@dataclass(frozen=True, slots=True)
class StockSubscriber:
    name: str
    at: str
    filter: Filter
    joins_s: float


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

    def cast(
        self, topology: Topology, random: Random
    ) -> tuple[StockMarket, list[StockPublisher], list[StockSubscriber]]:
        """Who takes part, where, and what each is going to do."""
        market = StockMarket(random, symbols=self.publishers)
        publishers: list[StockPublisher] = []
        subscribers: list[StockSubscriber] = []
        for symbol in market.symbols:
            publishers.append(self._publisher(topology, symbol, random))
            subscribers += self._subscribers(topology, market, symbol, random)
        return market, publishers, subscribers

    def _publisher(self, topology: Topology, symbol: str, random: Random) -> StockPublisher:
        at = random.choice(topology.brokers)
        period_s = 60.0 / random.uniform(*self.publications_per_min)
        first_s = self.joining_s + random.random() * period_s
        return StockPublisher(f"publisher-{symbol}", at, symbol, first_s, period_s)

    def _subscribers(
        self, topology: Topology, market: StockMarket, symbol: str, random: Random
    ) -> Iterator[StockSubscriber]:
        brokers = topology.brokers
        homes = random.sample(brokers, min(self.brokers_with_subscribers, len(brokers)))
        for number in range(self.subscribers_per_publisher):
            at = random.choice(homes)
            rating = random.choices(RATINGS, RATING_WEIGHTS)[0]
            filter = market.rated_filter(symbol, rating)
            joins_s = random.uniform(0.0, self.joining_s)
            yield StockSubscriber(f"subscriber-{symbol}-{number}", at, filter, joins_s)

    def quotes(
        self, market: StockMarket, publisher: StockPublisher
    ) -> Iterator[tuple[float, dict[str, Value]]]:
        """What a publisher publishes, and when."""
        quotes = int((self.duration_s - publisher.first_s) / publisher.period_s) + 1
        for number in range(max(quotes, 0)):
            at_s = publisher.first_s + number * publisher.period_s
            yield at_s, market.quote(publisher.symbol)

    def build(
        self,
        *,
        seed: int,
        topology: Topology | None = None,
        observers: tuple[Observer, ...] = (),
        check: bool = True,
    ) -> Simulator:
        """A simulator with everything planned; run it until `duration_s` and a little longer."""
        random = Random(seed)
        simulator = Simulator(
            topology or balanced_tree(self.brokers, fanout=self.fanout),
            seed=seed,
            resources=self.resources,
            link=self.link,
            observers=observers,
            check=check,
        )
        market, publishers, subscribers = self.cast(simulator.topology, random)
        for publisher in publishers:
            client = simulator.client(publisher.name, at=publisher.at)
            simulator.at(0.0, self._publish, client, market, publisher)
        for subscriber in subscribers:
            client = simulator.client(subscriber.name, at=subscriber.at)
            simulator.at(subscriber.joins_s, client.subscribe, subscriber.filter)
        return simulator

    def _publish(
        self, client: SimulatedClient, market: StockMarket, publisher: StockPublisher
    ) -> None:
        advertisement = client.advertise(market.advertisement(publisher.symbol))
        client.publish_all(advertisement, self.quotes(market, publisher))
