"""Waits and queue lengths at brokers, as in queueing theory.

Words    W -> queue_delay_s_mean; Lq -> waiting_mean, by Little's law: the time that all messages
         waited, divided by the length of the span; or queued_mean, from gauge readings.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from godwit.lab.metrics.percentiles import percentile, ranked
from godwit.lab.metrics.stages import Span, stage


@stage(
    "handled",
    columns="broker string, messages bigint, queue_delay_s_mean double, queue_delay_s_p99 double,"
    " queue_delay_s_max double, matching_delay_s_mean double, waiting_mean double",
)
def queueing(handled: DataFrame, over: Span) -> DataFrame:
    """Waiting before the matching engine, for each broker that handled something."""
    rows = over.of(handled).select("broker", "queue_delay_s", "matching_delay_s")
    return (
        ranked(rows, "queue_delay_s", "broker")
        .groupBy("broker")
        .agg(
            F.count("*").alias("messages"),
            F.avg("queue_delay_s").alias("queue_delay_s_mean"),
            percentile("queue_delay_s", 0.99).alias("queue_delay_s_p99"),
            F.max("queue_delay_s").alias("queue_delay_s_max"),
            F.avg("matching_delay_s").alias("matching_delay_s_mean"),
            (F.sum("queue_delay_s") / over.length_s).alias("waiting_mean"),
        )
    )


@stage("gauges", columns="broker string, queued_mean double, queued_growth_per_s double")
def queue_growth(gauges: DataFrame, over: Span) -> DataFrame:
    """Messages in all queues of each broker, and the slope of a line through the readings."""
    # Products of seconds since 1970 have too few digits left.
    since_start_s = F.col("time_s") - over.start_s
    return (
        over.of(gauges)
        .groupBy("broker")
        .agg(
            F.avg("messages_queued").alias("queued_mean"),
            F.regr_slope("messages_queued", since_start_s).alias("queued_growth_per_s"),
        )
    )
