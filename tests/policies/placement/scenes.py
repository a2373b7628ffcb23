"""Simulations with policies: who moved where, and whether every delivery was right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

from godwit.broker.effects import Decision
from godwit.content.filters import Filter
from godwit.content.messages import AdvertisementId
from godwit.overlay.topology import Topology
from godwit.simulation.faults import Fault
from godwit.simulation.observers import Observer
from godwit.simulation.oracle import Oracle
from godwit.simulation.resources import DEFAULT_RESOURCES, BrokerResources
from godwit.simulation.simulated_client import SimulatedClient
from godwit.simulation.simulator import Modules, Simulator
from godwit.simulation.statistics import Statistics
from godwit.workloads.workload import Workload

QUOTES = Filter.parse("class = 'STOCK' and symbol = 'X' and volume is a number")


@dataclass
class Watcher(Observer):
    """Keeps what policies decided and who moved."""

    decisions: list[tuple[float, str, Decision]] = field(default_factory=list)
    moves: list[tuple[float, str, str, str]] = field(default_factory=list)
    pauses_s: list[float] = field(default_factory=list)

    def on_decision(self, broker: str, policy: str, decision: Decision, now_s: float) -> None:
        self.decisions.append((now_s, broker, decision))

    def on_moved(
        self, client: str, source: str, target: str, took_s: float, paused_s: float, now_s: float
    ) -> None:
        self.moves.append((now_s, client, source, target))
        self.pauses_s.append(paused_s)

    def actions(self) -> list[str]:
        return [decision.action for _, _, decision in self.decisions]


class Scene:
    """A simulator with the oracle, statistics and a watcher; publishers and subscribers by hand."""

    def __init__(
        self,
        topology: Topology,
        modules: Modules,
        *,
        seed: int = 1,
        resources: BrokerResources = DEFAULT_RESOURCES,
        faults: Iterable[Fault] = (),
    ) -> None:
        self.oracle, self.statistics, self.watcher = Oracle(), Statistics(), Watcher()
        self.simulator = Simulator(
            topology,
            seed=seed,
            modules=modules,
            resources=resources,
            faults=faults,
            observers=(self.oracle, self.statistics, self.watcher),
        )
        self._random = Random(seed)

    def subscribers(self, at: str, filters: Sequence[str]) -> list[SimulatedClient]:
        """One subscriber at a broker for each of the filters."""
        clients = []
        for filter in filters:
            name = f"subscriber-{len(self.simulator.clients)}"
            client = self.simulator.client(name, at=at)
            client.subscribe(Filter.parse(filter))
            clients.append(client)
        return clients

    def publisher(
        self, at: str, *, from_s: float, until_s: float, period_s: float, name: str = "publisher"
    ) -> SimulatedClient:
        """Publishes quotes of X with a volume below 100, drawn at random."""
        client = self.simulator.client(name, at=at)
        advertisement = client.advertise(QUOTES)
        count = int((until_s - from_s) / period_s)
        client.publish_all(
            advertisement,
            (
                (
                    from_s + number * period_s,
                    {"class": "STOCK", "symbol": "X", "volume": self._random.randrange(100)},
                )
                for number in range(count)
            ),
        )
        return client

    def run(self, until_s: float) -> None:
        """Run, then on until all is quiet, and see that every delivery was right."""
        self.simulator.run(until_s=until_s)
        self.simulator.run()
        self.oracle.finish(self.simulator.now_s)
        assert self.oracle.is_satisfied, self.oracle.violations[:3]
        assert self.oracle.deliveries

    def home(self, client: str = "publisher") -> str:
        return self.simulator.clients[client].home.broker


def play(scene: Scene, workload: Workload, *, from_s: float, until_s: float) -> None:
    """All subscribers join at once; publishing starts at `from_s`."""
    simulator = scene.simulator
    advertised: dict[str, tuple[SimulatedClient, AdvertisementId]] = {}
    for publisher in workload.publishers:
        client = simulator.client(publisher.name, at=publisher.at)
        advertised[publisher.name] = client, client.advertise(publisher.advertisement)
    for subscriber in workload.subscribers:
        simulator.client(subscriber.name, at=subscriber.at).subscribe(subscriber.filter)
    for publishing in workload.publications(from_s=from_s, until_s=until_s):
        client, advertisement = advertised[publishing.publisher]
        simulator.at(publishing.at_s, client.publish, advertisement, dict(publishing.record))
