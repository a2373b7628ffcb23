"""A machine in another time zone accepts, computes and delivers the same."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.datacluster.memory_snapshots import MemorySnapshots
from tests.datacluster.small_cluster import START, make, opened, stored, subscribe
from tests.datacluster.stocking import UNKEYED, made, rows, store

from godwit.datacluster.datasets.loading import load
from godwit.datacluster.model.column_values import fit
from godwit.datacluster.model.dataset import ColumnType

SINCE = """CREATE CHANNEL Since(kind STRING, start TIMESTAMP) EVERY 10 SECONDS AS
    SELECT id, at, hour(at) AS hour, date_trunc('DAY', at) AS day, current_timestamp AS moment
    FROM NEW Reports WHERE type = :kind AND at >= :start"""
#: An hour that does not exist in Berlin, and a moment in India that is half past.
AT = "2026-03-29T02:30:00"
AT_S = 1774751400


@pytest.fixture(params=["Europe/Berlin", "Asia/Kolkata"])
def zone(
    request: pytest.FixtureRequest, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Of Python and of Java."""
    zones: Any = spark._jvm.java.util.TimeZone  # type: ignore[union-attr]
    before = zones.getDefault()
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    zones.setDefault(zones.getTimeZone(request.param))
    yield request.param
    zones.setDefault(before)
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("zone")
def test_the_zone_of_the_machine_does_not_matter(
    spark: SparkSession, snapshots: MemorySnapshots, tmp_path: Path
) -> None:
    assert fit(AT, ColumnType.TIMESTAMP) == AT_S * 1_000_000
    channels = opened(spark, snapshots, tmp_path / "channels")
    make(channels, SINCE)
    wanted = subscribe(channels, "A", "Since", kind="fire", start=AT)
    also = subscribe(channels, "A", "Since", kind="fire", start="2026-03-29T04:30:00+02:00")
    assert wanted == also, "they are one moment"
    times = [(1, AT_S - 1), (2, AT_S), (3, AT_S + 3_600)]
    reports = [{"id": id, "type": "fire", "at": at_s * 1_000_000} for id, at_s in times]
    snapshots.append("Reports", reports)
    channels.execute("Since", now_s=float(AT_S))
    found = stored(channels, {wanted: START}, "Since")[wanted].results
    day = "2026-03-29T00:00:00+00:00"
    assert [row for part in found for row in part.rows] == [
        {"id": 2, "at": f"{AT}+00:00", "hour": 2, "day": day, "moment": f"{AT}+00:00"},
        {
            "id": 3,
            "at": "2026-03-29T03:30:00+00:00",
            "hour": 3,
            "day": day,
            "moment": f"{AT}+00:00",
        },
    ]
    channels.close()
    storage, known = made(spark, tmp_path / "data", UNKEYED)
    store(storage, known, ["a", "b"])
    assert len(rows(storage.frame("Places", through=1))) == 2  # It compares `at`.
    storage.close()


@pytest.mark.usefixtures("zone")
def test_a_file_is_loaded_in_utc(spark: SparkSession, tmp_path: Path) -> None:
    storage, _ = made(spark, tmp_path, "CREATE DATASET Places (user STRING, at TIMESTAMP) STATIC")
    file = tmp_path / "places.csv"
    file.write_text(f"user,at\na,{AT}\n")
    load(storage, "Places", file)
    (row,) = storage.frame("Places", through=0).collect()
    assert row["at"].timestamp() == AT_S
    storage.close()
