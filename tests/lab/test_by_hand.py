"""Each stage over a trace that fits on a page, with results worked out by hand.

p publishes at B1, B2 passes on, s1 and s2 are at B3, B4 does nothing.  The span is ten seconds;
what happens at 10 is outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.lab.plain import assert_same

from godwit.errors import UsageError
from godwit.lab.metrics import STAGES
from godwit.lab.metrics.reading import spark_schema
from godwit.lab.metrics.stages import Span, stage
from godwit.trace.schema import TABLES

TEN_S = Span(0.0, 10.0, bucket_s=5.0)
LAST_BIT = [0] * 19 + [-(2**63)]

HANDLED = [
    # time, broker, kind, publisher, sequence, came_from, copies, matches, out, size, waited, d
    (0.0, "B3", "Publication", "$B3.m", 4, "m", 0, 0, 0, 20, 0.0, 0.25),
    (1.0, "B1", "Publication", "p", 0, "p", 1, 0, 1, 100, 1.0, 0.25),
    (2.0, "B2", "Publication", "p", 0, "B1", 1, 0, 1, 100, 0.0, 0.25),
    (3.0, "B3", "Publication", "p", 0, "B2", 0, 2, 2, 100, 2.0, 0.25),
    (4.0, "B1", "Subscription", None, None, "s4", 1, 0, 1, 50, 3.0, 0.5),
    (10.0, "B1", "Publication", "p", 1, "p", 1, 0, 1, 100, 9.0, 0.25),
]
DELIVERED = [
    # time, client, sequence, hops, delay
    (3.5, "s1", 0, 2, 1.0),
    (3.5, "s2", 0, 2, 2.0),
    (6.0, "s3", 1, 0, 4.0),  # Its number is beyond what B1 handled: a clock is late.
    (10.0, "s1", 1, 2, 9.0),
]
GAUGES = [
    # time, broker, Ir, Or, d, queued, subscriptions
    (0.0, "B1", 0.8, 0.1, 0.1, 3, 6),
    (0.0, "B4", 0.2, 0.1, 0.3, 0, 0),
    (5.0, "B1", 0.25, 0.1, 0.1, 1, 2),
    (5.0, "B4", 0.25, 0.1, 0.1, 2, 0),
    (9.0, "B1", 0.2, 0.15, 0.1, 0, 5),
    (9.0, "B2", 0.2, 0.15, 0.1, 0, 7),
    (9.0, "B3", 0.2, 0.15, 0.1, 0, 3),
    (9.0, "B4", 0.2, 0.15, 0.1, 0, 1),
    (10.0, "B1", 0.9, 0.9, 0.1, 9, 99),
]
DECISIONS = [(1.0, "moved"), (2.0, "moved"), (3.0, "refused"), (10.0, "moved")]


def tables() -> dict[str, pa.Table]:
    rows: dict[str, list[dict[str, Any]]] = {"handled": [], "delivered": []}
    names = (
        "time_s broker kind publisher sequence came_from copies local_matches messages_out"
        " size_bytes queue_delay_s matching_delay_s"
    )
    for cells in HANDLED:
        handled = dict(zip(names.split(), cells, strict=True))
        came_from = str(handled["came_from"])
        handled["from_broker"] = came_from.startswith("B")
        handled["is_control"] = came_from == "m"
        rows["handled"].append(handled)
    for time_s, client, sequence, hops, delay_s in DELIVERED:
        row = {"time_s": time_s, "client": client, "publisher": "p", "sequence": sequence}
        rows["delivered"].append({**row, "hops": hops, "delay_s": delay_s})
    names = (
        "time_s broker input_utilisation output_utilisation matching_delay_s messages_queued"
        " subscriptions"
    )
    rows["gauges"] = [dict(zip(names.split(), row, strict=True)) for row in GAUGES]
    rows["decisions"] = [
        {"time_s": time_s, "policy": "balance", "action": action} for time_s, action in DECISIONS
    ]
    return {name: pa.Table.from_pylist(rows[name], schema=TABLES[name]) for name in TABLES}


@pytest.fixture(scope="module")
def trace(spark: SparkSession) -> dict[str, DataFrame]:
    return {name: spark.createDataFrame(table) for name, table in tables().items()}


def rows(columns: str, *values: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [dict(zip(columns.split(), row, strict=True)) for row in values]


RATES = "broker messages_in_per_s messages_out_per_s messages_per_s bytes_in_per_s"
SPREAD = "brokers messages_per_s_mean messages_per_s_max messages_per_s_stddev messages_per_s_cov"
UTILISATION = (
    "bucket_s input_utilisation_mean input_utilisation_max output_utilisation_mean"
    " output_utilisation_max matching_delay_s_mean messages_queued_max"
)
DELAYS = "deliveries delay_s_mean delay_s_p50 delay_s_p99"
FORWARDING = "delivered pure_forwards yield pure_forwarders"
HISTOGRAM = "bin from_per_s to_per_s brokers"
PROFILE = "client publisher first_sequence bits received"
QUEUEING = (
    "broker messages queue_delay_s_mean queue_delay_s_p99 queue_delay_s_max matching_delay_s_mean"
    " waiting_mean"
)
TABLE_SIZES = "brokers subscriptions subscriptions_mean subscriptions_max"
PUBLISHER = "publisher first_sequence last_sequence publications publications_per_s bytes_per_s"

BY_HAND: Mapping[str, list[dict[str, Any]]] = {
    "broker_rates": rows(
        RATES,
        ("B1", 0.2, 0.2, 0.4, 15.0),
        ("B2", 0.1, 0.1, 0.2, 10.0),
        ("B3", 0.2, 0.2, 0.4, 12.0),
    ),
    "message_rate": rows(SPREAD, (4, 0.25, 0.4, 0.0275**0.5, 0.0275**0.5 / 0.25)),
    "utilisation_over_time": rows(
        UTILISATION,
        (0.0, 0.5, 0.8, 0.1, 0.1, 0.2, 3),
        (5.0, (2 * 0.25 + 4 * 0.2) / 6, 0.25, (2 * 0.1 + 4 * 0.15) / 6, 0.15, 0.1, 2),
    ),
    "convergence": rows(
        "measure settled_s", ("input_utilisation", 5.0), ("output_utilisation", 0.0)
    ),
    "hop_count": rows("deliveries hops_mean hops_max", (3, 4 / 3, 2)),
    "hop_histogram": rows("hops deliveries", (0, 1), (2, 2)),
    "delay": rows(DELAYS, (3, 7 / 3, 2.0, 3.96)),
    "delay_over_time": rows(
        f"bucket_s {DELAYS}", (0.0, 2, 1.5, 1.5, 1.99), (5.0, 1, 4.0, 4.0, 4.0)
    ),
    "forwarding": rows(FORWARDING, (1, 1, 0.5, 1)),
    "deliveries_per_subscriber": rows("client deliveries", ("s1", 1), ("s2", 1), ("s3", 1)),
    "aggregate_traffic": rows("messages bytes messages_per_s bytes_per_s", (2, 200, 0.2, 20.0)),
    "overhead_by_kind": rows(
        "kind is_control messages share",
        ("Publication", False, 3, 0.6),
        ("Publication", True, 1, 0.2),
        ("Subscription", False, 1, 0.2),
    ),
    "load_histogram": rows(HISTOGRAM, (0, 0.0, 0.02, 1), (10, 0.2, 0.22, 1), (19, 0.38, 0.4, 2)),
    "moves": rows("policy action decisions", ("balance", "moved", 2), ("balance", "refused", 1)),
    "between_brokers": rows("kind messages bytes links", ("Publication", 2, 200, 2)),
    "routing_tables": rows(TABLE_SIZES, (4, 16, 4.0, 7)),
    "queueing": rows(
        QUEUEING,
        ("B1", 2, 2.0, 2.98, 3.0, 0.375, 0.4),
        ("B2", 1, 0.0, 0.0, 0.0, 0.25, 0.0),
        ("B3", 2, 1.0, 1.98, 2.0, 0.25, 0.2),
    ),
    "queue_growth": rows(
        "broker queued_mean queued_growth_per_s",
        ("B1", 4 / 3, -41 / 122),
        ("B2", 0.0, None),
        ("B3", 0.0, None),
        ("B4", 2 / 3, 1 / 61),
    ),
    "publisher_rates": rows(PUBLISHER, ("p", 0, 0, 1, 0.1, 10.0), ("$B3.m", 4, 4, 1, 0.1, 2.0)),
    "subscriber_profiles": rows(
        PROFILE, ("s1", "p", -1279, LAST_BIT, 1), ("s2", "p", -1279, LAST_BIT, 1)
    ),
}

#: When nothing happens there is nothing to divide by.
IN_SILENCE: Mapping[str, list[dict[str, Any]]] = {
    "message_rate": rows(SPREAD, (4, 0.0, 0.0, 0.0, None)),
    "load_histogram": rows(HISTOGRAM, (0, 0.0, 0.0, 4)),
    "forwarding": rows(FORWARDING, (0, 0, None, 0)),
    "aggregate_traffic": rows("messages bytes messages_per_s bytes_per_s", (0, 0, 0.0, 0.0)),
    "routing_tables": rows(TABLE_SIZES, (0, 0, None, None)),
    "hop_count": rows("deliveries hops_mean hops_max", (0, None, None)),
    "delay": rows(DELAYS, (0, None, None, None)),
}


@pytest.mark.parametrize("name", sorted(STAGES))
def test_a_stage_says_what_was_worked_out(name: str, trace: dict[str, DataFrame]) -> None:
    found = STAGES[name](trace, TEN_S).collect()
    assert_same([row.asDict() for row in found], BY_HAND[name])


@pytest.mark.parametrize("name", sorted(STAGES))
def test_a_span_in_which_nothing_happens(name: str, trace: dict[str, DataFrame]) -> None:
    found = STAGES[name](trace, Span(100.0, 110.0)).collect()
    assert_same([row.asDict() for row in found], IN_SILENCE.get(name, []))


def test_a_broker_that_neither_delivers_nor_forwards_has_no_yield(
    trace: dict[str, DataFrame],
) -> None:
    """Only the module's publication, which nobody wanted."""
    found = STAGES["forwarding"](trace, Span(0.0, 1.0)).collect()
    assert_same([row.asDict() for row in found], rows(FORWARDING, (0, 0, None, 0)))


def test_a_trace_of_another_version_is_refused_by_the_column(trace: dict[str, DataFrame]) -> None:
    other = {**trace, "delivered": trace["delivered"].drop("delay_s")}
    with pytest.raises(UsageError, match="delay: its input delivered lacks the column delay_s dou"):
        STAGES["delay"](other, TEN_S)
    other = {
        **trace,
        "delivered": trace["delivered"].withColumn("hops", trace["delivered"].delay_s),
    }
    with pytest.raises(UsageError, match="its input delivered lacks the column hops int"):
        STAGES["delay"](other, TEN_S)


def test_a_slip_in_a_stage_is_an_error(trace: dict[str, DataFrame]) -> None:
    @stage("decisions", columns="action string, time_s bigint")
    def slip(decisions: DataFrame, over: Span) -> DataFrame:
        return over.of(decisions).select("action", "time_s")

    with pytest.raises(UsageError, match="slip: its result lacks the column time_s bigint"):
        slip(trace, TEN_S)

    @stage("decisions", columns="action string")
    def chatty(decisions: DataFrame, over: Span) -> DataFrame:
        return over.of(decisions).select("action", "time_s")

    with pytest.raises(UsageError, match="chatty: its result has columns that are not declared"):
        chatty(trace, TEN_S)


@pytest.mark.parametrize("span", [(1.0, 1.0, 60.0), (2.0, 1.0, 60.0), (0.0, 1.0, 0.0)])
def test_a_span_has_a_length(span: tuple[float, float, float]) -> None:
    with pytest.raises(UsageError, match="is not a span of time"):
        Span(*span)


def test_spark_has_every_column_of_the_schema() -> None:
    for name, schema in TABLES.items():
        assert spark_schema(name).names == schema.names
