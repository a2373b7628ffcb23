"""Each stage over traced runs, against the same metric computed without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.lab import plain
from tests.lab.runs import OVER, SEEDS

from godwit.lab.metrics import STAGES
from godwit.lab.metrics.delivery_profiles import (
    profiles_of,
    publisher_rates,
    publishers_of,
    subscriber_profiles,
)
from godwit.lab.metrics.reading import read_trace


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", sorted(STAGES))
def test_a_stage_says_what_a_loop_over_the_rows_says(
    name: str, seed: int, spark: SparkSession, traces: dict[int, Path]
) -> None:
    found = STAGES[name](read_trace(spark, traces[seed]), OVER).collect()
    expected = plain.PLAIN[name](plain.read(traces[seed]), OVER)
    assert expected, "a run that says nothing about the metric proves nothing"
    plain.assert_same([row.asDict() for row in found], expected)


def test_every_stage_has_its_loop() -> None:
    assert sorted(plain.PLAIN) == sorted(STAGES)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_runs_have_something_of_everything(seed: int, traces: dict[int, Path]) -> None:
    """Otherwise the comparison above might hold for want of cases."""
    trace = plain.read(traces[seed])
    (forwarding,) = plain.forwarding(trace, OVER)
    assert forwarding["delivered"]
    assert forwarding["pure_forwards"]
    assert len(plain.hop_histogram(trace, OVER)) > 2
    assert len(plain.delay_over_time(trace, OVER)) > 5
    assert len(plain.overhead_by_kind(trace, OVER)) > 2
    assert any(row["queue_delay_s_p99"] for row in plain.queueing(trace, OVER))
    assert any(row["queued_growth_per_s"] for row in plain.queue_growth(trace, OVER))
    assert any(word < 0 for row in plain.subscriber_profiles(trace, OVER) for word in row["bits"])


def test_profiles_expect_the_load_that_there_was(
    spark: SparkSession, traces: dict[int, Path]
) -> None:
    """Publishers sent less than a vector holds: nothing was shifted out."""
    tables = read_trace(spark, traces[1])
    publishers = publishers_of(publisher_rates(tables, OVER).collect())
    profiles = profiles_of(subscriber_profiles(tables, OVER).collect())

    received: dict[str, set[tuple[str, int]]] = {client: set() for client in profiles}
    for row in plain.within(plain.read(traces[1]), OVER)["delivered"]:
        publisher = publishers.get(row["publisher"])
        if publisher and publisher.first_id <= row["sequence"] <= publisher.last_id:
            received[row["client"]].add((row["publisher"], row["sequence"]))
    assert any(received.values())
    for client, profile in profiles.items():
        per_s = len(received[client]) / OVER.length_s
        assert profile.load(publishers).publications_per_s == pytest.approx(per_s)
