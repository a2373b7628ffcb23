"""The tables of a trace as the plain values that measures are computed from.

Gauges and decisions are small and are taken as they are.  Messages and deliveries are counted by
Spark, in buckets of time.

Messages are of a kind by what caused them:

publication   of a client
pie           load information
request       an advertisement or subscription of a module, its confirmation or withdrawal
coordination  of sessions
migration     a subscription, its confirmation, sweep or withdrawal, because a client moves
join          the same because a client joins or leaves; advertisements of publishers
other         between brokers, about neither
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from godwit.lab.declaration import Trace
from godwit.lab.metrics.stages import Span, stage

KINDS = ("publication", "pie", "request", "coordination", "migration", "join", "other")
PIE_CLASSES = ("$LOCAL_PIE", "$GLOBAL_PIE")
COORDINATION_CLASS = "$LB"
MODULE_PREFIX = "$"
#: The old broker withdraws a subscription this long after the move at the latest.
AFTER_MOVE_S = 5.0


@dataclass(frozen=True, slots=True)
class Reading:
    """A gauge of an edge broker."""

    time_s: float
    input: float
    output: float
    matching_s: float
    clients: int
    subscriptions: int
    bytes_out_per_s: float


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision, or a move."""

    time_s: float
    broker: str
    action: str
    subject: str
    source: str
    target: str
    reason: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Counted:
    """Messages of one kind in one bucket: those that brokers took in, and what they put out."""

    messages_in: int
    messages_out: int

    @property
    def messages(self) -> int:
        return self.messages_in + self.messages_out


def readings(trace: Trace, brokers: Sequence[str]) -> dict[str, list[Reading]]:
    """The gauges of these brokers, in order of time."""
    rows = (
        trace["gauges"]
        .where(F.col("broker").isin(*brokers))
        .select(
            "broker", "time_s", "input_utilisation", "output_utilisation", "matching_delay_s",
            "clients", "subscriptions", "bytes_out_per_s",
        )
        .collect()
    )  # fmt: skip
    found: dict[str, list[Reading]] = {broker: [] for broker in brokers}
    for broker, *values in sorted(rows, key=lambda row: row["time_s"]):
        found[broker].append(Reading(*values))
    return found


def decisions(trace: Trace) -> list[Decided]:
    """All decisions and moves, in order of time."""
    rows = trace["decisions"].drop("policy").collect()
    found = [
        Decided(
            row["time_s"],
            row["broker"],
            row["action"],
            row["subject"],
            row["source"],
            row["target"],
            msgspec.json.decode(row["reason"]),
        )
        for row in rows
    ]
    return sorted(found, key=lambda each: each.time_s)


def messages(trace: Trace, over: Span) -> dict[int, dict[str, Counted]]:
    """For each bucket the messages of each kind."""
    found: dict[int, dict[str, Counted]] = defaultdict(dict)
    for row in messages_by_cause(trace, over).collect():
        number = round((row["bucket_s"] - over.start_s) / over.bucket_s)
        found[number][row["cause"]] = Counted(row["messages_in"], row["messages_out"])
    return dict(found)


@dataclass(frozen=True, slots=True)
class DelayReading:
    deliveries: int
    mean_s: float
    max_s: float


def delays(trace: Trace, over: Span) -> dict[int, DelayReading]:
    """The delay of deliveries, bucket by bucket."""
    rows = (
        over.bucketed(trace["delivered"])
        .groupBy("bucket_s")
        .agg(
            F.count("*").alias("deliveries"),
            F.avg("delay_s").alias("mean_s"),
            F.max("delay_s").alias("max_s"),
        )
        .collect()
    )
    return {
        round((row["bucket_s"] - over.start_s) / over.bucket_s): DelayReading(
            row["deliveries"], row["mean_s"], row["max_s"]
        )
        for row in rows
    }


@stage(
    "handled",
    "decisions",
    columns="bucket_s double, cause string, messages_in bigint, messages_out bigint",
)
def messages_by_cause(handled: DataFrame, decisions: DataFrame, over: Span) -> DataFrame:
    """What brokers took in and put out, by what caused it."""
    of_client = F.coalesce("owner", F.when(~F.col("from_broker"), F.col("came_from")))
    rows = over.bucketed(handled).withColumn("of_client", of_client)
    is_request = (F.col("kind") != "Publication") & F.col("of_client").isNotNull()
    counted = _counted(rows.where(~is_request), _cause_of_publications())
    asked = rows.where(is_request).join(_moves(decisions), "of_client", "left")
    is_moving = F.coalesce(
        (F.col("time_s") >= F.col("began_s")) & (F.col("time_s") <= F.col("ended_s")), F.lit(False)
    )
    # A client that has moved several times has as many rows here: one that fits is enough.
    apart = asked.groupBy(
        "bucket_s", "broker", "time_s", "kind", "of_client", "came_from", "messages_out"
    ).agg(F.max(is_moving).alias("is_moving"))
    requests = _counted(apart, _cause_of_requests())
    return (
        counted.unionByName(requests)
        .groupBy("bucket_s", "cause")
        .agg(F.sum("messages_in").alias("messages_in"), F.sum("messages_out").alias("messages_out"))
    )


def _counted(rows: DataFrame, cause: Column) -> DataFrame:
    return (
        rows.withColumn("cause", cause)
        .groupBy("bucket_s", "cause")
        .agg(
            F.count("*").alias("messages_in"),
            F.sum(F.col("messages_out").cast("bigint")).alias("messages_out"),
        )
    )


def _moves(decisions: DataFrame) -> DataFrame:
    took_s = F.get_json_object("reason", "$.took_s").cast("double")
    return decisions.where((F.col("policy") == "migration") & (F.col("action") == "moved")).select(
        F.col("subject").alias("of_client"),
        (F.col("time_s") - took_s).alias("began_s"),
        (F.col("time_s") + AFTER_MOVE_S).alias("ended_s"),
    )


def _cause_of_publications() -> Column:
    is_publication = F.col("kind") == "Publication"
    return (
        F.when(is_publication & F.col("class").isin(*PIE_CLASSES), "pie")
        .when(is_publication & (F.col("class") == COORDINATION_CLASS), "coordination")
        .when(is_publication, "publication")
        .otherwise("other")
    )


def _cause_of_requests() -> Column:
    return (
        F.when(F.col("of_client").startswith(MODULE_PREFIX), "request")
        .when(F.col("is_moving"), "migration")
        .otherwise("join")
    )
