"""The publisher-placement setup of the thesis (7.2.1, GS1), simulated, as one declared value.

The workload is that of workloads/placement.py.  The demonstration, benchmarks and tests use this;
experiments combine the same parts themselves (simulation/playing.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from godwit.broker.modules import PolicyModule
from godwit.overlay import Overlay
from godwit.overlay.topology import Topology, balanced_tree
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.simulation.observers import Observer
from godwit.simulation.playing import play
from godwit.simulation.resources import (
    DEFAULT_LINK,
    DEFAULT_RESOURCES,
    BrokerResources,
    LinkOptions,
)
from godwit.simulation.simulator import NO_SETTINGS, Simulator
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
    """Number of brokers that the subscribers of one publisher are spread over (the thesis's X); all
    brokers, if there are fewer."""

    joining_s: float = 60.0
    """Subscribers arrive one after the other in this time; then publishing starts."""

    duration_s: float = 18 * 60.0
    resources: BrokerResources = DEFAULT_RESOURCES
    link: LinkOptions = DEFAULT_LINK

    def workload(self, topology: Topology, random: Random) -> tuple[Workload, tuple[Join, ...]]:
        """Publishers and subscribers with their brokers, and when the subscribers join."""
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
        overlay: Overlay = TreeRouting,
        settings: Mapping[str, Any] = NO_SETTINGS,
        observers: tuple[Observer, ...] = (),
        modules: Callable[[str], Sequence[PolicyModule]] = lambda _broker: (),
        check: bool = True,
    ) -> Simulator:
        """A simulator with everything scheduled; run it a little longer than `duration_s`.

        `settings` are those of the overlay.
        """
        simulator = Simulator(
            topology or balanced_tree(self.brokers, fanout=self.fanout),
            seed=seed,
            overlay=overlay,
            settings=settings,
            resources=self.resources,
            link=self.link,
            modules=modules,
            observers=observers,
            check=check,
        )
        workload, joining = self.workload(simulator.topology, Random(seed))
        play(simulator, workload, joining, from_s=self.joining_s, until_s=self.duration_s)
        return simulator
