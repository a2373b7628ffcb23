"""How `covering` is run: subscribers join a tree of brokers, with or without covering.

All mixes of a seed have the same publishers.  Those that draw from the six templates of LS3 also
have the same subscribers, at the same brokers, with the same symbols, in the same order; only
their filters differ.

Each subscriber joins when the subscription before is in effect everywhere, so that the result does
not depend on the speed of messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random

from godwit.experiments.watched import run_watched
from godwit.lab.declaration import Case
from godwit.overlay.topology import Topology, balanced_tree
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.simulation.observers import Observer
from godwit.simulation.playing import play
from godwit.simulation.simulator import Simulator
from godwit.workloads.allocation import allocation_workload, homogeneous_counts
from godwit.workloads.clients import Subscriber
from godwit.workloads.placement import Mix, PlacementSetup, placement_workload
from godwit.workloads.stock_publishers import quotes_of, stock_publishers
from godwit.workloads.stock_templates import filter_of_template
from godwit.workloads.stocks import StockMarket
from godwit.workloads.timelines import Join
from godwit.workloads.workload import Workload

#: Mixes of the six templates, as the weights with which these are drawn.  LS3 is the thesis's own.
TEMPLATE_MIXES: Mapping[str, Sequence[float]] = {
    "LS3": (0.20, 0.20, 0.20, 0.34, 0.05, 0.01),
    "LS3 less class": (0.20, 0.20, 0.20, 0.34, 0.05, 0.0),
    "symbol, high >": (1, 0, 0, 0, 0, 0),
    "symbol, low <": (0, 1, 0, 0, 0, 0),
    "symbol, volume >": (0, 0, 1, 0, 0, 0),
    "symbol": (0, 0, 0, 1, 0, 0),
    "volume >": (0, 0, 0, 0, 1, 0),
    "class": (0, 0, 0, 0, 0, 1),
}
PLACEMENT_MIXES = {"GS2 random": Mix.RANDOM, "GS3 enterprise": Mix.ENTERPRISE}
ALLOCATION_MIX = "RS4"
MIXES = (*TEMPLATE_MIXES, *PLACEMENT_MIXES, ALLOCATION_MIX)

#: Longer than a subscription takes to come into effect.
JOINS_EVERY_S = 0.2
PUBLICATIONS_PER_MIN = 70.0
PUBLISHING_S = 5.0


def topology_of(case: Case) -> Topology:
    return balanced_tree(int(case["brokers"]), fanout=2)


def run(case: Case, seed: int, folder: Path) -> None:
    topology = topology_of(case)
    workload = workload_of(case, topology, seed)
    in_order = Random(f"order {seed}").sample(workload.subscribers, len(workload.subscribers))
    joining = [Join(JOINS_EVERY_S * (n + 1), who) for n, who in enumerate(in_order)]
    from_s = joining[-1].at_s + JOINS_EVERY_S

    def build(observers: tuple[Observer, ...]) -> Simulator:
        routing = partial(TreeRouting, covering=bool(case["covering"]))
        simulator = Simulator(
            topology, seed=seed, overlay=routing, observers=observers, check=False
        )
        play(simulator, workload, joining, from_s=from_s, until_s=from_s + PUBLISHING_S)
        return simulator

    # Gauges are read at the start, and when all subscribers have joined.
    run_watched(build, folder, until_s=from_s + PUBLISHING_S, gauges_every_s=from_s)


# -- the clients -------------------------------------------------------------------------------


def workload_of(case: Case, topology: Topology, seed: int) -> Workload:
    mix, publishers = str(case["mix"]), int(case["publishers"])
    each = int(case["subscribers_per_publisher"])
    brokers, random = topology.brokers, Random(f"places {seed}")
    market = StockMarket(Random(f"market {seed}"), symbols=publishers)
    if mix == ALLOCATION_MIX:
        return allocation_workload(homogeneous_counts(publishers, each), market, brokers, random)
    if mix in PLACEMENT_MIXES:
        setup = PlacementSetup(
            publishers=publishers,
            publications_per_min=(PUBLICATIONS_PER_MIN, PUBLICATIONS_PER_MIN),
            subscribers_per_publisher=each,
            mix=PLACEMENT_MIXES[mix],
            brokers_with_subscribers=(len(brokers) + 1) // 4,
        )
        return placement_workload(setup, market, brokers, random)
    return Workload(
        publishers=stock_publishers(
            market, lambda: random.choice(brokers), lambda: PUBLICATIONS_PER_MIN, random
        ),
        subscribers=template_subscribers(
            market, TEMPLATE_MIXES[mix], publishers * each, brokers, random
        ),
        content=quotes_of(market),
    )


def template_subscribers(
    market: StockMarket,
    weights: Sequence[float],
    count: int,
    brokers: Sequence[str],
    random: Random,
) -> tuple[Subscriber, ...]:
    """Random brokers, random symbols; the templates are drawn last."""
    places = [(random.choice(market.symbols), random.choice(brokers)) for _ in range(count)]
    templates = random.choices(range(len(weights)), weights, k=count)
    return tuple(
        Subscriber(
            name=f"subscriber-{symbol}-{number}",
            at=at,
            filter=filter_of_template(template, symbol, market.seen(symbol), random),
        )
        for number, ((symbol, at), template) in enumerate(zip(places, templates, strict=True))
    )
