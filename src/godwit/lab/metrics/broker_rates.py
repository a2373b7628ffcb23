"""Load of brokers: message rates, utilisation, and when it settled.

Words    broker message rate -> messages_per_s: messages in and out (thesis 7.2; it does not say
         whether both count; `messages_in_per_s` and `messages_out_per_s` are given as well);
         Ir, Or -> input_utilisation, output_utilisation.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from godwit.lab.metrics.stages import Span, stage

#: A utilisation has settled when the brokers' mean stays within this of its value at the end.
SETTLED_WITHIN = 0.1


@stage(
    "handled",
    columns="broker string, messages_in_per_s double, messages_out_per_s double,"
    " messages_per_s double, bytes_in_per_s double",
)
def broker_rates(handled: DataFrame, over: Span) -> DataFrame:
    """The message rate of each broker that handled something."""
    length_s = F.lit(over.length_s)
    return (
        over.of(handled)
        .groupBy("broker")
        .agg(
            (F.count("*") / length_s).alias("messages_in_per_s"),
            (F.sum("messages_out") / length_s).alias("messages_out_per_s"),
            ((F.count("*") + F.sum("messages_out")) / length_s).alias("messages_per_s"),
            (F.sum("size_bytes") / length_s).alias("bytes_in_per_s"),
        )
    )


def rates_of_every_broker(handled: DataFrame, gauges: DataFrame, over: Span) -> DataFrame:
    """As `broker_rates`, with the brokers that handled nothing: these are in the gauges."""
    rates = broker_rates.compute(handled, over)
    return gauges.select("broker").distinct().join(rates, "broker", "left").na.fill(0.0)


@stage(
    "handled",
    "gauges",
    columns="brokers bigint, messages_per_s_mean double, messages_per_s_max double,"
    " messages_per_s_stddev double, messages_per_s_cov double",
)
def message_rate(handled: DataFrame, gauges: DataFrame, over: Span) -> DataFrame:
    """Mean, maximum, spread and coefficient of variation of the rate, over all brokers."""
    rate = F.col("messages_per_s")
    return rates_of_every_broker(handled, gauges, over).agg(
        F.count("*").alias("brokers"),
        F.avg(rate).alias("messages_per_s_mean"),
        F.max(rate).alias("messages_per_s_max"),
        F.stddev_pop(rate).alias("messages_per_s_stddev"),
        F.when(F.avg(rate) > 0, F.stddev_pop(rate) / F.avg(rate)).alias("messages_per_s_cov"),
    )


@stage(
    "gauges",
    columns="bucket_s double, input_utilisation_mean double, input_utilisation_max double,"
    " output_utilisation_mean double, output_utilisation_max double,"
    " matching_delay_s_mean double, messages_queued_max bigint",
)
def utilisation_over_time(gauges: DataFrame, over: Span) -> DataFrame:
    """Ir, Or and d of the brokers, bucket by bucket."""
    return (
        over.bucketed(gauges)
        .groupBy("bucket_s")
        .agg(
            F.avg("input_utilisation").alias("input_utilisation_mean"),
            F.max("input_utilisation").alias("input_utilisation_max"),
            F.avg("output_utilisation").alias("output_utilisation_mean"),
            F.max("output_utilisation").alias("output_utilisation_max"),
            F.avg("matching_delay_s").alias("matching_delay_s_mean"),
            F.max("messages_queued").alias("messages_queued_max"),
        )
    )


@stage("gauges", columns="measure string, settled_s double")
def convergence(gauges: DataFrame, over: Span) -> DataFrame:
    """When the mean utilisation settled near its final value: the start of that bucket.

    By buckets, because live brokers read their gauges at different times.
    """
    measures = ("input_utilisation", "output_utilisation")
    stacked = F.explode(
        F.array(*(F.struct(F.lit(m).alias("measure"), F.col(m).alias("value")) for m in measures))
    )
    means = (
        over.bucketed(gauges)
        .select("bucket_s", stacked.alias("each"))
        .groupBy(F.col("each.measure").alias("measure"), "bucket_s")
        .agg(F.avg("each.value").alias("mean"))
    )
    in_order = Window.partitionBy("measure").orderBy("bucket_s")
    to_the_end = in_order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    off = F.abs(F.col("mean") - F.last("mean").over(to_the_end)) > SETTLED_WITHIN
    following = F.lead("bucket_s").over(in_order)
    return (
        means.withColumn("off", off)
        .withColumn("following_s", following)
        .groupBy("measure")
        .agg(
            F.coalesce(F.max(F.when(F.col("off"), F.col("following_s"))), F.min("bucket_s")).alias(
                "settled_s"
            )
        )
    )
