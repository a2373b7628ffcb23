"""Measures: messages of each broker, their distribution, hops, deliveries, tables.

Words    load -> publications that a broker gets from other brokers, and sends to them, in a second
         ("input and output message traffic", document 003, section 4); messages with clients do
         not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean, pstdev

from pyspark.sql import functions as F  # noqa: N812

from godwit.experiments.clusters.runs import FROM_S, until_s
from godwit.lab.curves import curve, points
from godwit.lab.declaration import Case, Measure, Trace
from godwit.lab.metrics.digests import digest
from godwit.lab.metrics.numbers import numbers
from godwit.lab.metrics.paths import delay, hop_count
from godwit.lab.metrics.stages import Span
from godwit.lab.metrics.traffic import between_brokers, routing_tables

BIN = 50
BINS = 12
"""The last one is for all higher loads."""

LOADS, IN_BIN = "load", "brokers_in_bin"

MEASURES: Mapping[str, Measure] = {
    "load_mean": Measure("messages/s", "in and out of a broker, publications, mean"),
    "load_max": Measure("messages/s", "... of the busiest broker"),
    "load_min": Measure("messages/s", "... of the least busy one"),
    "load_cov": Measure("", "... standard deviation over mean"),
    "load_top_tenth": Measure("", "share of the load that the busiest tenth of the brokers has"),
    "fullest_bin": Measure("", "share of the brokers in the fullest bin of 50 messages/s"),
    "fullest_bin_from": Measure("messages/s", "... where it begins"),
    "above_250": Measure("", "share of the brokers with more than 250 messages/s"),
    "publications": Measure("publications", "by clients, in the time that is measured"),
    "copies": Measure("messages", "publications between brokers, for each one published"),
    "hops_mean": Measure("links", "between publisher's and subscriber's broker, mean"),
    "hops_max": Measure("links", "... at most"),
    "delay_s_p99": Measure("s", "from the publisher's broker to the subscriber, 99th percentile"),
    "subscriptions_sent": Measure("messages", "subscriptions between brokers"),
    "stored_mean": Measure("subscriptions", "in the table of a broker, mean"),
    "stored_max": Measure("subscriptions", "in the fullest table"),
    "deliveries": Measure("publications", "delivered to subscribers, from the start"),
    "deliveries_digest": Measure("", "equal for equal deliveries"),
    **curve(LOADS, "messages/s", "of the brokers, the busiest first"),
    **curve(IN_BIN, "brokers", "with a load in this bin"),
}


def measure(trace: Trace, case: Case) -> dict[str, float]:
    ever = Span(0.0, 1e9)
    over = Span(until_s(case) - float(case["measured_s"]), until_s(case))
    publications = trace["handled"].where(F.col("kind") == "Publication")
    sent = between_brokers(trace, ever)
    is_subscription = F.col("kind") == "Subscription"
    found = numbers(
        hop_count(trace, over).select("hops_mean", "hops_max"),
        delay(trace, over).select("delay_s_p99"),
        routing_tables(trace, Span(FROM_S - 1.0, 1e9)),
        over.of(publications).agg(
            F.sum(F.when(~F.col("from_broker"), 1).otherwise(0)).alias("publications"),
            F.sum("copies").alias("copies"),
        ),
        sent.agg(
            F.coalesce(F.sum(F.when(is_subscription, F.col("messages"))), F.lit(0)).alias(
                "subscriptions_sent"
            )
        ),
        trace["delivered"].agg(
            F.count("*").alias("deliveries"),
            F.sum(digest("client", "publisher", "sequence")).alias("deliveries_digest"),
        ),
    )
    by_broker = over.of(publications).groupBy("broker")
    counted = by_broker.agg((F.sum(F.col("from_broker").cast("int")) + F.sum("copies")).alias("n"))
    loads = [row.n / over.length_s for row in counted.collect()]
    loads += [0.0] * (int(case["brokers"]) - len(loads))
    names = ("publications", "hops_mean", "hops_max", "delay_s_p99", "subscriptions_sent")
    return {
        **distribution(loads),
        **{name: found[name] for name in (*names, "deliveries", "deliveries_digest")},
        "copies": found["copies"] / found["publications"],
        "stored_mean": found["subscriptions_mean"],
        "stored_max": found["subscriptions_max"],
    }


def distribution(loads: Sequence[float]) -> dict[str, float]:
    """Of the loads of all brokers."""
    falling = sorted(loads, reverse=True)
    total, count = sum(falling), len(falling)
    bins = [0] * BINS
    for load in falling:
        bins[min(int(load // BIN), BINS - 1)] += 1
    return {
        "load_mean": total / count,
        "load_max": falling[0],
        "load_min": falling[-1],
        "load_cov": pstdev(falling) / mean(falling),
        "load_top_tenth": sum(falling[: max(count // 10, 1)]) / total,
        "fullest_bin": max(bins) / count,
        "fullest_bin_from": float(BIN * bins.index(max(bins))),
        "above_250": sum(load > 250 for load in falling) / count,
        **points(LOADS, dict(enumerate(falling[:120]))),
        **points(IN_BIN, dict(enumerate(map(float, bins)))),
    }
