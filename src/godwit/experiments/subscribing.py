"""Subscribers join a tree of brokers, with or without covering.  The runs of covering.py.

All mixes of a seed have the same publishers.  Those that draw from the six templates of LS3 also
have the same subscribers, at the same brokers, with the same symbols, in the same order; they
differ in what is wanted of a symbol.

Each joins when the subscription before is in effect everywhere, so that nothing depends on which
of two messages is faster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random

from pyspark.sql import functions as F  # noqa: N812

from godwit.experiments.watched import run_watched
from godwit.lab.experiment import Case, Trace
from godwit.lab.numbers import numbers
from godwit.lab.paths import hop_count
from godwit.lab.stages import Span
from godwit.lab.traffic import between_brokers, routing_tables
from godwit.overlay.topology import Topology, balanced_tree
from godwit.overlay.tree import TreeRouting
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

#: Mixes of the six templates, and with which weight each is drawn.  LS3 is the thesis's own.
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

#: Longer than a subscription takes to be in effect.
JOINS_EVERY_S = 0.2
PUBLICATIONS_PER_MIN = 70.0
PUBLISHING_S = 5.0
#: Digests are below this; their sum over a run is exact in a float.
DIGEST_BELOW = 1_000_003


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

    # Gauges are read at the start, and when everybody has joined.
    run_watched(build, folder, until_s=from_s + PUBLISHING_S, gauges_every_s=from_s)


# -- who takes part ----------------------------------------------------------------------------


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
    """At random brokers, about random symbols; what they want of these is drawn last."""
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


# -- the numbers -------------------------------------------------------------------------------


def measure(trace: Trace, case: Case) -> dict[str, float]:
    ever = Span(0.0, 1e9)
    sent = between_brokers(trace, ever)
    is_subscription = F.col("kind") == "Subscription"
    is_publication = F.col("kind") == "Publication"
    digest = F.pmod(F.xxhash64("client", "publisher", "sequence", "hops"), F.lit(DIGEST_BELOW))
    found = numbers(
        sent.agg(
            F.sum(F.when(is_subscription, F.col("messages"))).alias("forwarded"),
            F.sum(F.when(is_subscription, F.col("links"))).alias("links_told"),
            F.sum(F.when(is_publication, F.col("messages"))).alias("publications_sent"),
        ),
        routing_tables(trace, ever),
        hop_count(trace, ever),
        trace["delivered"].agg(F.sum(digest).alias("deliveries_digest")),
    )
    crossings = expected_crossings(trace, topology_of(case))
    return {
        "forwarded": found["forwarded"],
        "links_told": found["links_told"],
        "stored": found["subscriptions"],
        "stored_mean": found["subscriptions_mean"],
        "stored_max": found["subscriptions_max"],
        "publications_sent": found["publications_sent"],
        "deliveries": found["deliveries"],
        "deliveries_digest": found["deliveries_digest"],
        "crossings": crossings.total(),
        "crossings_once": len(crossings),
        "crossings_records": sum(map(records, crossings.values())),
    }


def expected_crossings(trace: Trace, topology: Topology) -> Counter[tuple[str, str, str]]:
    """Where subscriptions should cross, from who the trace says asked for what at which broker."""
    asked = trace["handled"].where(~F.col("from_broker"))
    homes: dict[str, list[tuple[str, str]]] = {"Advertisement": [], "Subscription": []}
    for row in asked.where(F.col("kind").isin(*homes)).collect():
        homes[row.kind].append((row.came_from.split("-")[1], row.broker))
    return crossings_of(topology, homes["Subscription"], dict(homes["Advertisement"]))


def crossings_of(
    topology: Topology, subscribers: Iterable[tuple[str, str]], publishers: Mapping[str, str]
) -> Counter[tuple[str, str, str]]:
    """How many subscribers of a symbol are behind a link, seen from its publisher.

    The key is the symbol and the link, in the direction in which their subscriptions go.
    """
    distances = {symbol: topology.distances(at) for symbol, at in publishers.items()}
    crossings: Counter[tuple[str, str, str]] = Counter()
    for symbol, broker in subscribers:
        links_to = distances[symbol]
        at = broker
        while links_to[at]:
            nearer = min(topology.neighbours(at), key=links_to.__getitem__)
            crossings[symbol, at, nearer] += 1
            at = nearer
    return crossings


def records(count: int) -> float:
    """Of so many thresholds in random order, how many are wider than all before (Renyi 1962)."""
    return sum(1 / place for place in range(1, count + 1))
