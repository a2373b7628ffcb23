"""Measures of the experiments about the mesh.

Words    delivered -> publications that came to a broker with a local subscriber for them;
         pure forwards -> those that came to one without, which sent them on;
         paths -> distinct ways from one broker to another along primary and soft links, each of
         which leads nearer: the choices that brokers have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from godwit.experiments.mesh.prepared import topology_of
from godwit.experiments.mesh.runs import span_of
from godwit.lab.curves import curve, points
from godwit.lab.declaration import Case, Measure, Trace
from godwit.lab.metrics.numbers import numbers
from godwit.lab.metrics.paths import delay, forwarding
from godwit.lab.metrics.stages import Span, stage
from godwit.overlay.topology import Topology

#: A point of a curve of traffic.
BUCKET_S = 10.0

MEASURES: Mapping[str, Measure] = {
    "publications": Measure("publications", "of all publishers"),
    "delivered": Measure("publications", "handled by brokers with a subscriber for them"),
    "pure_forwards": Measure("publications", "handled by brokers that only sent them on"),
    "yield": Measure("", "delivered / (delivered + pure forwards)"),
    "copies_max": Measure("copies", "of one publication that one broker received, at most"),
    "hops_mean": Measure("links", "from the publisher's broker to one that delivers, mean"),
    "hops_max": Measure("links", "... at most"),
    "delay_s_mean": Measure("s", "from the publisher's broker to a subscriber, mean"),
    "delay_s_p99": Measure("s", "... 99th percentile"),
    "traffic_per_s": Measure("messages/s", "publications between brokers"),
    "accounted_per_s": Measure(
        "messages/s", "... that were delivered, or sent on by pure forwarders"
    ),
    "exchange_share": Measure("", "share of load exchange in the bytes between brokers"),
    "soft_links": Measure("links", "that brokers use at the end, each direction for itself"),
    "links_changed": Measure("decisions", "to open or close a soft link in the measured time"),
    "pairs_100": Measure("", "share of pairs of brokers with at least 100 paths"),
    "pairs_1000": Measure("", "... with more than 1,000 paths"),
    "paths_max": Measure("paths", "between two brokers, at most"),
    **curve("hops", "", "share of deliveries over at most so many links"),
    **curve("paths", "", "share of pairs with at least 2 to the power of the bucket paths"),
    **curve("traffic", "messages/s", "publications between brokers"),
}


def measure(trace: Trace, case: Case) -> dict[str, float]:
    over = span_of(case)
    found = numbers(
        forwarding(trace, over).drop("pure_forwarders"),
        delay(trace, over).select("delay_s_mean", "delay_s_p99"),
        path_lengths(trace, over),
        between(trace, over),
    )
    changes = _changes(trace)
    links = open_links(changes, until_s=over.end_s)
    paths = path_counts(topology_of(case), links)
    return {
        **found,
        "copies_max": _copies_max(trace, over),
        "soft_links": len(links),
        "links_changed": sum(over.start_s <= at_s < over.end_s for at_s, *_ in changes),
        "pairs_100": _share(paths, 100),
        "pairs_1000": _share(paths, 1_001),
        "paths_max": max(paths),
        **points("hops", _hops(trace, over)),
        **points("paths", {n: _share(paths, 2**n) for n in range(max(paths).bit_length())}),
        **points("traffic", _traffic(trace, over)),
    }


@stage("handled", columns="publications bigint, hops_mean double, hops_max int")
def path_lengths(handled: DataFrame, over: Span) -> DataFrame:
    """Links between the brokers of publisher and subscriber, once for each such broker."""
    published = over.of(handled).where((F.col("kind") == "Publication") & ~F.col("is_control"))
    hops = F.when((F.col("local_matches") > 0) & F.col("from_broker"), F.col("hops"))
    return published.agg(
        F.count(F.when(~F.col("from_broker"), True)).alias("publications"),
        F.avg(hops).alias("hops_mean"),
        F.max(hops).alias("hops_max"),
    )


@stage("handled", columns="traffic_per_s double, accounted_per_s double, exchange_share double")
def between(handled: DataFrame, over: Span) -> DataFrame:
    """Publications between brokers, what became of them, and the cost of load exchange."""
    received = over.of(handled).where("from_broker")
    is_publication = (F.col("kind") == "Publication") & ~F.col("is_control")
    is_useful = is_publication & ((F.col("local_matches") > 0) | (F.col("copies") > 0))
    letters = F.sum(F.when(F.col("kind") == "Letter", F.col("size_bytes")).otherwise(0))
    return received.agg(
        (F.count(F.when(is_publication, True)) / over.length_s).alias("traffic_per_s"),
        (F.count(F.when(is_useful, True)) / over.length_s).alias("accounted_per_s"),
        (letters / F.sum("size_bytes")).alias("exchange_share"),
    )


def _published(trace: Trace, over: Span) -> DataFrame:
    is_publication = (F.col("kind") == "Publication") & ~F.col("is_control")
    return over.of(trace["handled"]).where(is_publication & F.col("from_broker"))


def _copies_max(trace: Trace, over: Span) -> float:
    """Duplicates are visible here, also those that a client would drop."""
    copies = _published(trace, over).groupBy("broker", "publisher", "sequence").count()
    return float(copies.agg(F.max("count")).collect()[0][0])


def _hops(trace: Trace, over: Span) -> dict[int, float]:
    rows = _published(trace, over).where("local_matches > 0").groupBy("hops").count().collect()
    counts = {row["hops"]: row["count"] for row in rows}
    total = sum(counts.values())
    return {
        n: sum(count for hops, count in counts.items() if hops <= n) / total
        for n in range(max(counts) + 1)
    }


def _traffic(trace: Trace, over: Span) -> dict[int, float]:
    number = F.floor((F.col("time_s") - over.start_s) / BUCKET_S).alias("bucket")
    rows = _published(trace, over).groupBy(number).count().collect()
    return {int(row["bucket"]): row["count"] / BUCKET_S for row in rows}


# -- paths between brokers ---------------------------------------------------------------------


def _changes(trace: Trace) -> list[tuple[float, str, str, str]]:
    rows = trace["decisions"].where("policy = 'soft links'").orderBy("time_s").collect()
    return [(row["time_s"], row["action"], row["source"], row["target"]) for row in rows]


def open_links(
    changes: Iterable[tuple[float, str, str, str]], *, until_s: float
) -> set[tuple[str, str]]:
    """The soft links that brokers use then, from their decisions in order of time."""
    links: set[tuple[str, str]] = set()
    for at_s, action, source, target in changes:
        if at_s < until_s:
            (links.add if action == "open" else links.discard)((source, target))
    return links


def path_counts(topology: Topology, soft: Iterable[tuple[str, str]]) -> list[int]:
    """For each ordered pair of brokers, the ways along primary and soft links that lead nearer."""
    linked = {*soft, *topology.links, *((b, a) for a, b in topology.links)}
    found: list[int] = []
    for source in topology.brokers:
        ways = {source: ([source], 1)}
        frontier = [source]
        for broker in frontier:  # Grows while it is walked: from the source outwards.
            path, _ = ways[broker]
            for beyond in topology.neighbours(broker):
                if beyond not in ways:
                    count = sum(ways[each][1] for each in path if (each, beyond) in linked)
                    ways[beyond] = [*path, beyond], count
                    frontier.append(beyond)
        found += [count for broker, (_, count) in ways.items() if broker != source]
    return found


def _share(paths: list[int], least: int) -> float:
    return sum(count >= least for count in paths) / len(paths)
