"""What a case of the load-balancing experiments plays: brokers, clients, and when they do what.

A case is `{"platform": "cluster", "overlay": "star", "joins": "one", "algorithm": "thesis"}`:

platform    platforms.py
overlay     `star`: head B0, edge brokers B1, B2 ... (LS1).  `chain`: clusters with heads B10, B20
            ..., each with edge brokers B11 and B12, B21 and B22 ... (LS6)
joins       `one`: all at B1 or B11, while it starts; later half of the publishers double their
            rate (LS2).  `grouped`, `individual`: churn at all edge brokers (LS4), without that step
algorithm   of balancing: `thesis`, `random`, or `none`

and if it is varied: `edges` of the star (LS5) and `clusters` of the chain (LS7), whose brokers are
then equal except on PlanetLab, without a step of the rate; and what runs.py knows of settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from godwit.experiments.balance.platforms import PLATFORMS, Platform
from godwit.lab.declaration import Case
from godwit.overlay.topology import Topology, topology
from godwit.simulation.resources import BrokerResources
from godwit.workloads.balancing import (
    BalancingSetup,
    balancing_filter,
    balancing_timeline,
    balancing_workload,
)
from godwit.workloads.stocks import THESIS_LIKE, Market, StockMarket
from godwit.workloads.timelines import STAY_S, Timeline, churn, joins
from godwit.workloads.workload import Workload

EDGES_OF_CLUSTER = 2
#: Churn on the small platforms: fewer joins, so that as many subscribers stay as join elsewhere.
SMALL_JOINS_PER_MIN, JOINS_PER_MIN = 15, 60
#: The end of LS5 and LS7: they are about what is reached, and the brokers are many.
SCALED_UNTIL_S = 2500.0
#: The last part of a phase, in which it is measured.
LATE_SHARE = 0.25
LATE_S_MAX = 500.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    platform: Platform
    topology: Topology
    resources: Mapping[str, BrokerResources]
    clusters: Mapping[str, tuple[str, ...]]
    """The edge brokers of each head, nearest to the publishers first."""

    publishers_at: str
    subscribers_at: str
    setup: BalancingSetup
    joins: str
    has_step: bool
    until_s: float

    @property
    def edges(self) -> tuple[str, ...]:
        return tuple(edge for edges in self.clusters.values() for edge in edges)

    @property
    def joined_s(self) -> float:
        """All subscribers have joined; of churn: as many leave as join."""
        return self.setup.joining_s if self.joins == "one" else STAY_S[1]

    @property
    def step_s(self) -> float:
        """When the rate steps up; the end, if it does not."""
        return self.setup.rate_step_s if self.has_step else self.until_s

    @property
    def late_before(self) -> tuple[float, float]:
        """The last part of the time before the step."""
        return _late(self.joined_s, self.step_s)

    @property
    def late_after(self) -> tuple[float, float]:
        """The last part of the time after the step."""
        return _late(self.step_s, self.until_s) if self.has_step else self.late_before


def _late(from_s: float, to_s: float) -> tuple[float, float]:
    return to_s - min(LATE_S_MAX, LATE_SHARE * (to_s - from_s)), to_s


def scene_of(case: Case) -> Scene:
    platform = PLATFORMS[str(case["platform"])]
    is_star = case["overlay"] == "star"
    scaled = "edges" in case or "clusters" in case
    joins_one = case["joins"] == "one"
    place = _star(platform, case) if is_star else _chain(platform, case)
    heads = tuple(place)
    links = [(head, edge) for head, edges in place.items() for edge in edges]
    links += list(pairwise(heads))
    setup = platform.setup if is_star else platform.global_setup
    until_s = platform.until_s if is_star else platform.global_until_s
    return Scene(
        platform=platform,
        topology=topology([*heads, *(edge for edges in place.values() for edge in edges)], links),
        resources={
            **dict.fromkeys(heads, platform.head),
            **{name: found for edges in place.values() for name, found in edges.items()},
        },
        clusters={head: tuple(edges) for head, edges in place.items()},
        publishers_at=heads[0],
        subscribers_at=next(iter(place[heads[0]])),
        setup=setup,
        joins=str(case["joins"]),
        has_step=joins_one and not scaled,
        until_s=min(until_s, SCALED_UNTIL_S) if scaled else until_s,
    )


Place = dict[str, dict[str, BrokerResources]]


def _star(platform: Platform, case: Case) -> Place:
    edges = platform.several(int(case["edges"])) if "edges" in case else platform.edges
    return {"B0": {f"B{number}": each for number, each in enumerate(edges, start=1)}}


def _chain(platform: Platform, case: Case) -> Place:
    if "clusters" in case:
        clusters = [platform.several(EDGES_OF_CLUSTER)] * int(case["clusters"])
    else:
        clusters = list(platform.clusters)
    return {
        f"B{10 * number}": {
            f"B{10 * number + place}": each for place, each in enumerate(edges, start=1)
        }
        for number, edges in enumerate(clusters, start=1)
    }


# -- clients -------------------------------------------------------------------------------------


def clients_of(scene: Scene, random: Random) -> tuple[Workload, Timeline]:
    """The clients, and when they join, leave and change their rate."""
    setup = scene.setup
    market = StockMarket(random, symbols=setup.publishers, profile=THESIS_LIKE)
    workload = balancing_workload(
        setup,
        market,
        random,
        publishers_at=scene.publishers_at,
        subscribers_at=scene.subscribers_at,
    )
    if scene.joins != "one":
        return workload, _churn(scene, market, random)
    if scene.has_step:
        return workload, balancing_timeline(setup, workload, random)
    return workload, joins(workload.subscribers, random, within_s=setup.joining_s)


def _churn(scene: Scene, market: Market, random: Random) -> Timeline:
    idle = scene.setup.zero_traffic_share
    is_small = scene.setup.subscribers < JOINS_PER_MIN * STAY_S[0] / 60.0
    return churn(
        lambda _: balancing_filter(market, random, zero_traffic=random.random() < idle),
        scene.edges,
        random,
        minutes=int(scene.until_s // 60),
        grouped=scene.joins == "grouped",
        joins_per_min=SMALL_JOINS_PER_MIN if is_small else JOINS_PER_MIN,
    )
