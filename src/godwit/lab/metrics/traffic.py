"""Messages by kind, sizes of routing tables, balance of the load, and moves."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from godwit.lab.metrics.broker_rates import rates_of_every_broker
from godwit.lab.metrics.stages import Span, stage

HISTOGRAM_BINS = 20


@stage(
    "handled",
    columns="messages bigint, bytes bigint, messages_per_s double, bytes_per_s double",
)
def aggregate_traffic(handled: DataFrame, over: Span) -> DataFrame:
    """All messages that brokers received from other brokers."""
    between = over.of(handled).where("from_broker")
    messages, size = F.count("*"), F.coalesce(F.sum("size_bytes"), F.lit(0))
    return between.agg(
        messages.alias("messages"),
        size.alias("bytes"),
        (messages / over.length_s).alias("messages_per_s"),
        (size / over.length_s).alias("bytes_per_s"),
    )


@stage(
    "handled",
    columns="kind string, is_control boolean, messages bigint, share double",
)
def overhead_by_kind(handled: DataFrame, over: Span) -> DataFrame:
    """The messages that brokers handled, by kind, and whether they were control messages."""
    counted = over.of(handled).groupBy("kind", "is_control").agg(F.count("*").alias("messages"))
    total = counted.agg(F.sum("messages").alias("total"))
    return counted.crossJoin(total).select(
        "kind", "is_control", "messages", (F.col("messages") / F.col("total")).alias("share")
    )


@stage("handled", columns="kind string, messages bigint, bytes bigint, links bigint")
def between_brokers(handled: DataFrame, over: Span) -> DataFrame:
    """Messages between brokers by kind, and over how many links; each direction counts as one."""
    return (
        over.of(handled)
        .where("from_broker")
        .groupBy("kind")
        .agg(
            F.count("*").alias("messages"),
            F.sum("size_bytes").alias("bytes"),
            F.count_distinct("came_from", "broker").alias("links"),
        )
    )


@stage(
    "gauges",
    columns="brokers bigint, subscriptions bigint, subscriptions_mean double,"
    " subscriptions_max bigint",
)
def routing_tables(gauges: DataFrame, over: Span) -> DataFrame:
    """The subscriptions in the tables of all brokers, by the last gauge of each."""
    last = F.max_by("subscriptions", "time_s").alias("kept")
    return (
        over.of(gauges)
        .groupBy("broker")
        .agg(last)
        .agg(
            F.count("*").alias("brokers"),
            F.coalesce(F.sum("kept"), F.lit(0)).alias("subscriptions"),
            F.avg("kept").alias("subscriptions_mean"),
            F.max("kept").alias("subscriptions_max"),
        )
    )


@stage("handled", "gauges", columns="bin int, from_per_s double, to_per_s double, brokers bigint")
def load_histogram(handled: DataFrame, gauges: DataFrame, over: Span) -> DataFrame:
    """Brokers by message rate, in bins of equal width from zero to the highest rate."""
    rates = rates_of_every_broker(handled, gauges, over).select("messages_per_s")
    highest = rates.agg(F.max("messages_per_s").alias("highest"))
    width = F.col("highest") / HISTOGRAM_BINS
    # Without any load the width is 0, and all brokers are in the first bin.
    place = F.coalesce(F.try_divide(F.col("messages_per_s"), width), F.lit(0.0))
    number = F.least(F.floor(place), F.lit(HISTOGRAM_BINS - 1))
    return (
        rates.crossJoin(highest)
        .withColumn("bin", number.cast("int"))
        .groupBy("bin", "highest")
        .agg(F.count("*").alias("brokers"))
        .select(
            "bin",
            (F.col("bin") * width).alias("from_per_s"),
            ((F.col("bin") + 1) * width).alias("to_per_s"),
            "brokers",
        )
    )


@stage("decisions", columns="policy string, action string, decisions bigint")
def moves(decisions: DataFrame, over: Span) -> DataFrame:
    """Decisions and moves, by policy."""
    counted = over.of(decisions).groupBy("policy", "action")
    return counted.agg(F.count("*").alias("decisions"))
