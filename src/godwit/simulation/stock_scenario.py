"""The publisher-placement setup of the thesis (7.2.1, GS1), simulated, as one declared value.

The workload is that of workloads/placement.py.  Demonstration, benchmarks and tests use this;
experiments put the same together from its parts (playing.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from godwit.broker.modules import PolicyModule
from godwit.overlay.topology import Topology, balanced_tree
from godwit.simulation.observers import Observer
from godwit.simulation.playing import play
from godwit.simulation.resources import (
    DEFAULT_LINK,
    DEFAULT_RESOURCES,
    BrokerResources,
    LinkOptions,
)
from godwit.simulation.simulator import Simulator
from godwit.workloads.placement import PlacementSetup, placement_workload
from godwit.workloads.stocks import StockMarket
from godwit.workloads.timelines import Join, joins
from godwit.workloads.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class StockScenario:
    brokers: int = 127
    fanout: int = 2
    publishers: int = 30
    publications_per_min: tuple[float, float] = (30.0, 300.0)
    subscribers_per_publisher: int = 200
    brokers_with_subscribers: int = 16
    """Over how many brokers the subscribers of one publisher are spread (the thesis's X); all, if
    there are fewer."""

    joining_s: float = 60.0
    """Subscribers arrive one after the other in this time; then publishing starts."""

    duration_s: float = 18 * 60.0
    resources: BrokerResources = DEFAULT_RESOURCES
    link: LinkOptions = DEFAULT_LINK

    def cast(self, topology: Topology, random: Random) -> tuple[Workload, tuple[Join, ...]]:
        """Who takes part, where, and when the subscribers join."""
        setup = PlacementSetup(
            publishers=self.publishers,
            publications_per_min=self.publications_per_min,
            subscribers_per_publisher=self.subscribers_per_publisher,
            brokers_with_subscribers=min(self.brokers_with_subscribers, len(topology.brokers)),
        )
        market = StockMarket(random, symbols=self.publishers)
        workload = placement_workload(setup, market, topology.brokers, random)
        return workload, joins(workload.subscribers, random, within_s=self.joining_s)

    def build(
        self,
        *,
        seed: int,
        topology: Topology | None = None,
        observers: tuple[Observer, ...] = (),
        modules: Callable[[str], Sequence[PolicyModule]] = lambda _broker: (),
        check: bool = True,
    ) -> Simulator:
        """A simulator with everything planned; run it until `duration_s` and a little longer."""
        simulator = Simulator(
            topology or balanced_tree(self.brokers, fanout=self.fanout),
            seed=seed,
            resources=self.resources,
            link=self.link,
            modules=modules,
            observers=observers,
            check=check,
        )
        workload, joining = self.cast(simulator.topology, Random(seed))
        play(simulator, workload, joining, from_s=self.joining_s, until_s=self.duration_s)
        return simulator
