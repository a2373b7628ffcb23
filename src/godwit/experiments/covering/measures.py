"""Measures: subscriptions sent and stored, and what the tree and the order of joins predict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from pyspark.sql import functions as F  # noqa: N812

from godwit.experiments.covering.runs import topology_of
from godwit.lab.declaration import Case, Measure, Trace
from godwit.lab.metrics.digests import digest
from godwit.lab.metrics.numbers import numbers
from godwit.lab.metrics.paths import hop_count
from godwit.lab.metrics.stages import Span
from godwit.lab.metrics.traffic import between_brokers, routing_tables
from godwit.overlay.topology import Topology

MEASURES: Mapping[str, Measure] = {
    "forwarded": Measure("messages", "subscriptions sent between brokers"),
    "links_told": Measure("links", "that carried a subscription; each direction is one"),
    "stored": Measure("subscriptions", "in the tables of all brokers at the end"),
    "stored_mean": Measure("subscriptions", "in the table of a broker, mean"),
    "stored_max": Measure("subscriptions", "in the fullest table"),
    "publications_sent": Measure("messages", "publications sent between brokers"),
    "deliveries": Measure("publications", "delivered to subscribers"),
    "deliveries_digest": Measure("", "equal for equal deliveries"),
    "crossings": Measure(
        "messages", "expected if each subscription went to the publisher of its symbol"
    ),
    "crossings_once": Measure("messages", "... if only one for each symbol crossed a link"),
    "crossings_records": Measure(
        "messages", "... if only those wider than all before for the symbol did"
    ),
}


def measure(trace: Trace, case: Case) -> dict[str, float]:
    ever = Span(0.0, 1e9)
    sent = between_brokers(trace, ever)
    is_subscription = F.col("kind") == "Subscription"
    is_publication = F.col("kind") == "Publication"
    delivery = digest("client", "publisher", "sequence", "hops")
    found = numbers(
        sent.agg(
            F.sum(F.when(is_subscription, F.col("messages"))).alias("forwarded"),
            F.sum(F.when(is_subscription, F.col("links"))).alias("links_told"),
            F.sum(F.when(is_publication, F.col("messages"))).alias("publications_sent"),
        ),
        routing_tables(trace, ever),
        hop_count(trace, ever),
        trace["delivered"].agg(F.sum(delivery).alias("deliveries_digest")),
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
    """Where subscriptions should cross links, from the clients' messages in the trace."""
    asked = trace["handled"].where(~F.col("from_broker"))
    homes: dict[str, list[tuple[str, str]]] = {"Advertisement": [], "Subscription": []}
    for row in asked.where(F.col("kind").isin(*homes)).collect():
        homes[row.kind].append((row.came_from.split("-")[1], row.broker))
    return crossings_of(topology, homes["Subscription"], dict(homes["Advertisement"]))


def crossings_of(
    topology: Topology, subscribers: Iterable[tuple[str, str]], publishers: Mapping[str, str]
) -> Counter[tuple[str, str, str]]:
    """The number of subscribers of a symbol behind each link, seen from its publisher.

    The key is the symbol and the link, in the direction of the subscriptions.
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
    """The expected number of records in so many random thresholds (Renyi 1962)."""
    return sum(1 / place for place in range(1, count + 1))
