"""Hops and delays of publications, and brokers that only forward them.

Words    pure forward -> a broker handled a publication, had no subscriber for it, and sent it on
         (Publiy, table 2); pure forwarder -> a broker that does nothing else;
         yield -> delivered / (delivered + pure forwards); null if there was neither.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from godwit.lab.metrics.percentiles import percentile, ranked
from godwit.lab.metrics.stages import Span, stage


@stage("delivered", columns="deliveries bigint, hops_mean double, hops_max int")
def hop_count(delivered: DataFrame, over: Span) -> DataFrame:
    """Overlay links between publisher's and subscriber's broker, over all deliveries."""
    return over.of(delivered).agg(
        F.count("*").alias("deliveries"),
        F.avg("hops").alias("hops_mean"),
        F.max("hops").alias("hops_max"),
    )


@stage("delivered", columns="hops int, deliveries bigint")
def hop_histogram(delivered: DataFrame, over: Span) -> DataFrame:
    return over.of(delivered).groupBy("hops").agg(F.count("*").alias("deliveries"))


_DELAYS = "deliveries bigint, delay_s_mean double, delay_s_p50 double, delay_s_p99 double"


@stage("delivered", columns=_DELAYS)
def delay(delivered: DataFrame, over: Span) -> DataFrame:
    """From acceptance by the publisher's broker to the subscriber, over all deliveries."""
    return _delays(over.of(delivered))


@stage("delivered", columns=f"bucket_s double, {_DELAYS}")
def delay_over_time(delivered: DataFrame, over: Span) -> DataFrame:
    return _delays(over.bucketed(delivered), "bucket_s")


def _delays(frame: DataFrame, *of: str) -> DataFrame:
    in_order = ranked(frame.select(*of, "delay_s"), "delay_s", *of)
    return in_order.groupBy(*of).agg(
        F.count("*").alias("deliveries"),
        F.avg("delay_s").alias("delay_s_mean"),
        percentile("delay_s", 0.5).alias("delay_s_p50"),
        percentile("delay_s", 0.99).alias("delay_s_p99"),
    )


@stage(
    "handled",
    columns="delivered bigint, pure_forwards bigint, yield double, pure_forwarders bigint",
)
def forwarding(handled: DataFrame, over: Span) -> DataFrame:
    """The share of the brokers' work that was for their own subscribers."""
    publications = over.of(handled).where(F.col("kind") == "Publication")
    has_local = F.col("local_matches") > 0
    came_from_client = ~F.col("from_broker")
    is_forward = ~has_local & (F.col("copies") > 0)
    by_broker = publications.groupBy("broker").agg(
        F.sum(has_local.cast("bigint")).alias("delivered"),
        # The first broker of a publication serves its publisher, so it does not only forward.
        F.sum((is_forward & ~came_from_client).cast("bigint")).alias("pure_forwards"),
        F.max((has_local | came_from_client).cast("int")).alias("serves_clients"),
    )
    delivered = F.coalesce(F.sum("delivered"), F.lit(0))
    pure_forwards = F.coalesce(F.sum("pure_forwards"), F.lit(0))
    return by_broker.agg(
        delivered.alias("delivered"),
        pure_forwards.alias("pure_forwards"),
        F.try_divide(delivered, delivered + pure_forwards).alias("yield"),
        F.count(F.when(F.col("serves_clients") == 0, True)).alias("pure_forwarders"),
    )


@stage("delivered", columns="client string, deliveries bigint")
def deliveries_per_subscriber(delivered: DataFrame, over: Span) -> DataFrame:
    return over.of(delivered).groupBy("client").agg(F.count("*").alias("deliveries"))
