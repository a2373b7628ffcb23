"""Measures: load, hops and delays; of a live run, deliveries as seen by its clients."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from godwit.experiments.static_tree.runs import PARITY_BROKERS, size_of
from godwit.lab.declaration import Case, Measure, Trace
from godwit.lab.metrics.broker_rates import message_rate, utilisation_over_time
from godwit.lab.metrics.delivery_profiles import publisher_rates
from godwit.lab.metrics.digests import DIGEST_BELOW, digest
from godwit.lab.metrics.numbers import numbers
from godwit.lab.metrics.paths import delay, forwarding, hop_count
from godwit.lab.metrics.stages import Span, stage
from godwit.lab.metrics.traffic import aggregate_traffic, overhead_by_kind

#: Simulated time starts at 0, live time in 1970.
EVER = Span(0.0, 1e10)

MEASURES: Mapping[str, Measure] = {
    "messages_per_s_mean": Measure("messages/s", "message rate of a broker, in and out, mean"),
    "messages_per_s_max": Measure("messages/s", "... of the busiest broker"),
    "messages_per_s_stddev": Measure("messages/s", "... its standard deviation over brokers"),
    "between_per_s": Measure("messages/s", "all messages from broker to broker"),
    "input_utilisation_mean": Measure("", "share of its matching capacity that a broker uses"),
    "input_utilisation_max": Measure("", "... highest reading of any broker"),
    "output_utilisation_mean": Measure("", "share of its bandwidth that a broker uses"),
    "output_utilisation_max": Measure("", "... highest reading of any broker"),
    "pure_forwarders": Measure("brokers", "without clients, which only forward"),
    "overhead_share": Measure("", "share of handled messages that are not publications of clients"),
    "publications": Measure("publications", "published"),
    "deliveries": Measure("deliveries", "of publications to subscribers"),
    "sunk_share": Measure(
        "", "deliveries, as a share of all pairs of a publication and its subscribers"
    ),
    "hops_mean": Measure("hops", "links between publisher's and subscriber's broker, mean"),
    "hops_max": Measure("hops", "... the farthest"),
    "delay_s_mean": Measure("s", "from the publisher's broker to the subscriber, mean"),
    "delay_s_p50": Measure("s", "... median"),
    "delay_s_p99": Measure("s", "... 99th percentile"),
    "digest": Measure("", "equal for two runs with the same deliveries"),
}


def measure(trace: Trace, case: Case) -> dict[str, float]:
    size = size_of(case)
    if int(case["brokers"]) == PARITY_BROKERS:
        return numbers(hop_count(trace, EVER), delay(trace, EVER), delivery_digest(trace, EVER))
    whole = Span(size.read_from_s, size.until_s, bucket_s=size.until_s - size.read_from_s)
    found = numbers(
        hop_count(trace, whole),
        delay(trace, whole),
        message_rate(trace, whole).drop("brokers", "messages_per_s_cov"),
        utilisation_over_time(trace, whole).drop(
            "bucket_s", "matching_delay_s_mean", "messages_queued_max"
        ),
        aggregate_traffic(trace, whole).select(F.col("messages_per_s").alias("between_per_s")),
        forwarding(trace, whole).select("pure_forwarders"),
        publisher_rates(trace, whole).agg(F.sum("publications").alias("publications")),
        _overhead(overhead_by_kind(trace, whole)),
    )
    wanting = found["publications"] * size.setup.subscribers_per_publisher
    return {**found, "sunk_share": found["deliveries"] / wanting}


def _overhead(by_kind: DataFrame) -> DataFrame:
    """The share of messages that are not publications of clients."""
    is_overhead = (F.col("kind") != "Publication") | F.col("is_control")
    share = F.sum(F.when(is_overhead, F.col("share")).otherwise(0.0))
    return by_kind.agg(share.alias("overhead_share"))


@stage("delivered", columns="digest bigint")
def delivery_digest(delivered: DataFrame, over: Span) -> DataFrame:
    """Equal for two runs with the same deliveries over the same numbers of hops.

    Publications are ranked for each publisher, because live clients do not number theirs from 0.
    """
    number = F.dense_rank().over(Window.partitionBy("publisher").orderBy("sequence"))
    row = digest("client", "publisher", number, "hops")
    digests = over.of(delivered).select(row.alias("digest"))
    return digests.agg(F.pmod(F.sum("digest"), F.lit(DIGEST_BELOW)).alias("digest"))
