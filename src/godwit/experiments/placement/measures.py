"""Measures of the experiments about publisher placement: load, delay, and moves."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from godwit.experiments.placement.runs import size_of
from godwit.lab.declaration import Case, Measure, Trace
from godwit.lab.metrics.broker_rates import (
    message_rate,
    rates_of_every_broker,
    utilisation_over_time,
)
from godwit.lab.metrics.digests import digest
from godwit.lab.metrics.numbers import numbers
from godwit.lab.metrics.paths import delay, hop_count
from godwit.lab.metrics.stages import Span, stage
from godwit.lab.metrics.traffic import aggregate_traffic

MEASURES: Mapping[str, Measure] = {
    "messages_per_s_mean": Measure("messages/s", "message rate of a broker, in and out, mean"),
    "messages_in_per_s_mean": Measure("messages/s", "... incoming messages only"),
    "messages_per_s_max": Measure("messages/s", "... of the busiest broker"),
    "between_per_s": Measure("messages/s", "all messages from broker to broker"),
    "input_utilisation_mean": Measure("", "share of its matching capacity that a broker uses"),
    "input_utilisation_max": Measure("", "... highest reading of any broker"),
    "output_utilisation_mean": Measure("", "share of its bandwidth that a broker uses"),
    "output_utilisation_max": Measure("", "... highest reading of any broker"),
    "overhead_share": Measure(
        "", "share of letters and routing messages in all messages in and out"
    ),
    "deliveries": Measure("deliveries", "of publications to subscribers"),
    "hops_mean": Measure("hops", "links between publisher's and subscriber's broker, mean"),
    "hops_max": Measure("hops", "... the farthest"),
    "delay_s_mean": Measure("s", "from the publisher's broker to the subscriber, mean"),
    "delay_s_p50": Measure("s", "... median"),
    "delay_s_p99": Measure("s", "... 99th percentile"),
    "moves": Measure("moves", "of publishers, from the start"),
    "moved_first_s_mean": Measure("s", "time of a publisher's first move; 0 without moves"),
    "moved_last_s": Measure("s", "end of the last move; 0 without moves"),
    "paused_s_mean": Measure("s", "pause of publications during a move; 0 without moves"),
    "paused_s_max": Measure("s", "... at most"),
    "paused_hops_correlation": Measure("", "of pause and length of the path; 0 if one is constant"),
    "moved_hops_mean": Measure("hops", "of a move"),
    "selection_s_mean": Measure("s", "from the query to a decision to move; 0 without moves"),
    "selection_s_max": Measure("s", "... at most"),
    "selection_hops_correlation": Measure(
        "", "of selection and length of the path; 0 if one is constant"
    ),
    "advertisements_per_hop": Measure(
        "messages", "advertisements and confirmations between brokers, per link of a move"
    ),
    "homes": Measure("", "equal for runs whose publishers moved to the same brokers"),
}


def measure(trace: Trace, case: Case) -> dict[str, float]:
    size = size_of(case)
    whole = Span(size.read_from_s, size.until_s, bucket_s=size.until_s - size.read_from_s)
    return numbers(
        hop_count(trace, whole),
        delay(trace, whole),
        message_rate(trace, whole).select("messages_per_s_mean", "messages_per_s_max"),
        messages_in(trace, whole),
        utilisation_over_time(trace, whole).drop(
            "bucket_s", "matching_delay_s_mean", "messages_queued_max"
        ),
        aggregate_traffic(trace, whole).select(F.col("messages_per_s").alias("between_per_s")),
        overhead(trace, whole),
        relocations(trace, Span(0.0, size.until_s)),
        decided(trace, Span(0.0, size.until_s)),
        # All subscribers have joined by then.
        carrying(trace, Span(size.joining_s + 2.0, size.until_s)),
    )


@stage("handled", "gauges", columns="messages_in_per_s_mean double")
def messages_in(handled: DataFrame, gauges: DataFrame, over: Span) -> DataFrame:
    """Incoming messages, over all brokers."""
    rates = rates_of_every_broker(handled, gauges, over)
    return rates.agg(F.avg("messages_in_per_s").alias("messages_in_per_s_mean"))


@stage("handled", columns="overhead_share double")
def overhead(handled: DataFrame, over: Span) -> DataFrame:
    """Messages between brokers that are not publications of clients, of all messages in and out.

    Each is counted twice, at its sender and at its receiver: it may be sent with a publication.
    """
    is_overhead = F.col("from_broker") & ((F.col("kind") != "Publication") | F.col("is_control"))
    in_and_out = F.count("*") + F.sum("messages_out")
    share = 2 * F.count(F.when(is_overhead, True)) / in_and_out
    return over.of(handled).agg(F.coalesce(share, F.lit(0.0)).alias("overhead_share"))


@stage(
    "decisions",
    columns="moves bigint, moved_first_s_mean double, moved_last_s double, paused_s_mean double,"
    " paused_s_max double, homes bigint",
)
def relocations(decisions: DataFrame, over: Span) -> DataFrame:
    """Moves that were made, and the final brokers."""
    of_each = (
        over.of(decisions)
        .where(is_move())
        .groupBy("subject")
        .agg(
            F.count("*").alias("moves"),
            F.min("time_s").alias("first_s"),
            F.max("time_s").alias("last_s"),
            F.sum(number("paused_s")).alias("paused_s"),
            F.max(number("paused_s")).alias("paused_s_max"),
            F.max_by("target", "time_s").alias("target"),
        )
    )
    moves = F.coalesce(F.sum("moves"), F.lit(0))
    return of_each.agg(
        moves.alias("moves"),
        or_zero(F.avg("first_s")).alias("moved_first_s_mean"),
        or_zero(F.max("last_s")).alias("moved_last_s"),
        or_zero(F.sum("paused_s") / moves).alias("paused_s_mean"),
        or_zero(F.max("paused_s_max")).alias("paused_s_max"),
        F.coalesce(F.sum(digest("subject", "target")), F.lit(0)).alias("homes"),
    )


@stage(
    "decisions",
    columns="selection_s_mean double, selection_s_max double, selection_hops_correlation double,"
    " moved_hops_mean double, paused_hops_correlation double",
)
def decided(decisions: DataFrame, over: Span) -> DataFrame:
    """Durations of selection and of moves, and the length of the path.

    The length of a move is that of the request just before.
    """
    before = Window.partitionBy("subject").orderBy("time_s")
    rows = over.of(decisions).select(
        is_move().alias("is_move"),
        F.last(number("hops"), ignorenulls=True).over(before).alias("hops"),
        F.when(F.col("action") == "asked", number("selection_s")).alias("selection_s"),
        F.when(is_move(), number("paused_s")).alias("paused_s"),
    )
    return rows.agg(
        or_zero(F.avg("selection_s")).alias("selection_s_mean"),
        or_zero(F.max("selection_s")).alias("selection_s_max"),
        or_zero(F.corr("selection_s", "hops")).alias("selection_hops_correlation"),
        or_zero(F.avg(F.when(F.col("is_move"), F.col("hops")))).alias("moved_hops_mean"),
        or_zero(F.corr("paused_s", "hops")).alias("paused_hops_correlation"),
    )


@stage("handled", "decisions", columns="advertisements_per_hop double")
def carrying(handled: DataFrame, decisions: DataFrame, over: Span) -> DataFrame:
    """Messages between brokers about the advertisement of a move: MUM there, MCM back."""
    of_moves = F.col("kind").isin("Advertisement", "AdvertisementInEffect") & F.col("from_broker")
    sent = over.of(handled).agg(F.count(F.when(of_moves, True)).alias("sent"))
    is_asked = F.col("action") == "asked"
    links = over.of(decisions).agg(F.sum(F.when(is_asked, number("hops"))).alias("links"))
    return sent.crossJoin(links).select(
        or_zero(F.col("sent") / F.col("links")).alias("advertisements_per_hop")
    )


def is_move() -> Column:
    """Rows of completed moves."""
    return (F.col("policy") == "migration") & (F.col("action") == "moved")


def number(name: str) -> Column:
    """A number from the reason of a decision."""
    return F.get_json_object("reason", f"$.{name}").cast("double")


def or_zero(value: Column) -> Column:
    """Null and NaN as zero."""
    return F.coalesce(F.nanvl(value.cast("double"), F.lit(0.0)), F.lit(0.0))
