"""What the page of test_by_hand.py has no room for: each case is a table of its own."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from godwit.lab.metrics import STAGES
from godwit.lab.metrics.stages import Span
from godwit.trace.schema import TABLES


def found(
    spark: SparkSession, stage: str, over: Span, **tables: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """What a stage says of these rows; other tables are empty, other columns null."""
    frames = {
        name: spark.createDataFrame(pa.Table.from_pylist(tables.get(name, []), schema=schema))
        for name, schema in TABLES.items()
    }
    return [row.asDict() for row in STAGES[stage](frames, over).collect()]


def gauges(*readings: tuple[float, str, float]) -> list[dict[str, Any]]:
    """Of a time, a broker, and its utilisation of input; that of output is half of it."""
    return [
        {
            "time_s": time_s,
            "broker": broker,
            "input_utilisation": value,
            "output_utilisation": value / 2,
        }
        for time_s, broker, value in readings
    ]


def settled_s(spark: SparkSession, over: Span, *readings: tuple[float, str, float]) -> Any:
    rows = found(spark, "convergence", over, gauges=gauges(*readings))
    return {row["measure"]: row["settled_s"] for row in rows}["input_utilisation"]


def test_brokers_that_read_their_gauges_at_other_moments_are_steady_all_the_same(
    spark: SparkSession,
) -> None:
    """B1 always shows 0.9 and B2 0.1: moment by moment that looks like an earthquake."""
    over = Span(1000.0, 1040.0, bucket_s=10.0)
    readings = [
        (1000.0 + 10 * n + late_s, broker, value)
        for n in range(4)
        for late_s, broker, value in ((0.1, "B1", 0.9), (3.2, "B2", 0.1))
    ]
    assert settled_s(spark, over, *readings) == 1000.0


def test_what_swings_back_has_not_settled_before(spark: SparkSession) -> None:
    over = Span(0.0, 50.0, bucket_s=10.0)
    steps = [(5.0, "B1", 0.5), (15.0, "B1", 0.9), (25.0, "B1", 0.5), (35.0, "B1", 0.59)]
    assert settled_s(spark, over, *steps) == 20.0
    assert settled_s(spark, over, *steps, (45.0, "B1", 0.99)) == 40.0


def test_near_enough_is_near_enough(spark: SparkSession) -> None:
    over = Span(0.0, 20.0, bucket_s=10.0)
    assert settled_s(spark, over, (5.0, "B1", 0.1), (15.0, "B1", 0.0)) == 0.0
    assert settled_s(spark, over, (5.0, "B1", 0.101), (15.0, "B1", 0.0)) == 10.0


def test_a_publication_that_goes_nowhere_from_here_was_not_forwarded(spark: SparkSession) -> None:
    """Its last subscriber has just left."""
    handled = [
        {"time_s": 1.0, "broker": "B2", "kind": "Publication", "from_broker": True,
         "copies": 0, "local_matches": 0},
    ]  # fmt: skip
    (row,) = found(spark, "forwarding", Span(0.0, 10.0), handled=handled)
    assert row == {"delivered": 0, "pure_forwards": 0, "yield": None, "pure_forwarders": 1}


def test_a_profile_is_of_the_last_publications_and_of_no_earlier_one(spark: SparkSession) -> None:
    last, first = 2_000, 2_000 - 1_279
    published = {"time_s": 1.0, "broker": "B1", "kind": "Publication", "publisher": "p"}
    handled = [{**published, "sequence": last, "from_broker": False, "size_bytes": 1}]
    delivered = [
        {"time_s": 2.0, "client": "s", "publisher": "p", "sequence": sequence}
        for sequence in (first - 1, first, first + 64, last, last + 1)
    ]
    over = Span(0.0, 10.0)
    (row,) = found(spark, "subscriber_profiles", over, handled=handled, delivered=delivered)
    assert (row["first_sequence"], row["received"]) == (first, 3)
    assert row["bits"] == [1, 1, *[0] * 17, -(2**63)]
