"""The log as a source: offsets, limits of batches, partitions.  Without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from tests.datacluster.boxes import open_log, some

from godwit.datacluster.log import feed_log as log_module
from godwit.datacluster.log import log_source as source_module
from godwit.datacluster.log.durable_position import durable_position
from godwit.datacluster.log.feed_log import FeedLog, LogSettings
from godwit.datacluster.log.log_frames import DamagedError, segments
from godwit.datacluster.log.log_source import LogReader

TINY = LogSettings(segment_bytes=1)


def reader(log: FeedLog, *, start: int = 0, rows_max: int = 100, tasks_max: int = 2) -> LogReader:
    return LogReader(log.folder, start=start, rows_max=rows_max, tasks_max=tasks_max)


def add(log: FeedLog, *numbers: int) -> None:
    log.append(some(*numbers), [("a", number) for number in numbers])


def through(reader: LogReader, after: int) -> int:
    return reader.latestOffset({"position": after}, reader.getDefaultReadLimit())["position"]


def rows(reader: LogReader, after: int, through: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for partition in reader.partitions({"position": after}, {"position": through}):
        for batch in reader.read(partition):
            columns = batch.to_pydict()
            found += zip(columns["_position"], columns["n"], strict=True)
    return found


def test_it_reads_what_is_between_two_positions(tmp_path: Path) -> None:
    log = open_log(tmp_path, settings=TINY)
    spark = reader(log)
    assert spark.initialOffset() == {"position": 0}
    assert through(spark, 0) == 0
    add(log, 10, 11)
    add(log, 12)
    assert through(spark, 0) == 3
    assert rows(spark, 0, 3) == [(1, 10), (2, 11), (3, 12)]
    assert rows(spark, 2, 3) == [(3, 12)]
    add(log, 13)
    assert through(spark, 3) == 4
    assert rows(spark, 3, 4) == [(4, 13)]
    assert rows(reader(log), 2, 4) == [(3, 12), (4, 13)], "as after a restart"
    log.close()


def test_what_is_not_yet_safe_is_not_seen(tmp_path: Path) -> None:
    """A frame that was written but not synced is truncated."""
    log = open_log(tmp_path)
    add(log, 1)
    spark = reader(log)
    size_bytes = segments(tmp_path)[0].stat().st_size
    add(log, 2, 3)
    log._durable.write(1)
    assert through(spark, 0) == 1
    assert rows(spark, 0, 1) == [(1, 1)]
    log.close()
    with segments(tmp_path)[0].open("r+b") as file:
        file.truncate(size_bytes)
    log = open_log(tmp_path)
    add(log, 4)
    assert through(spark, 1) == 2
    assert rows(spark, 1, 2) == [(2, 4)]
    log.close()


def test_a_batch_is_repeated_whole_although_it_is_not_known_what_is_safe(tmp_path: Path) -> None:
    """As after a restart, while the position is being written: Spark reads what it planned."""
    log = open_log(tmp_path)
    add(log, 1, 2)
    (tmp_path / "durable").write_bytes(b"torn")
    assert durable_position(tmp_path) is None
    spark = reader(log)
    assert rows(spark, 0, 2) == [(1, 1), (2, 2)]
    assert through(spark, 2) == 2
    log.close()


def test_a_backlog_is_read_in_portions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path)
    for n in range(10):
        add(log, 3 * n, 3 * n + 1, 3 * n + 2)
    spark = reader(log, rows_max=7)
    assert spark.getDefaultReadLimit() == ReadMaxRows(7)
    assert through(spark, 0) == 6
    assert through(spark, 6) == 12
    assert through(reader(log, rows_max=1), 6) == 9, "a frame is the least"
    everything = spark.latestOffset({"position": 0}, ReadAllAvailable())
    assert everything == {"position": 30}
    monkeypatch.setattr(source_module, "BATCH_BYTES_MAX", 1)
    assert through(spark, 6) == 9
    log.close()


def test_what_is_available_now_does_not_grow(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    add(log, 1, 2)
    spark = reader(log)
    spark.prepareForTriggerAvailableNow()
    add(log, 3)
    assert through(spark, 0) == 2
    assert through(spark, 2) == 2
    log.close()


def test_tasks_share_what_is_worth_sharing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "ROWS_PER_FRAME", 1)
    log = open_log(tmp_path, settings=TINY)
    add(log, *range(10))
    spark = reader(log, tasks_max=3)
    start, end = {"position": 0}, {"position": 10}
    assert len(spark.partitions(start, end)) == 1
    monkeypatch.setattr(source_module, "PARTITION_BYTES_MIN", 1)
    parts = spark.partitions(start, end)
    assert [len(part.frames) for part in parts] == [4, 3, 3]
    assert rows(spark, 0, 10) == [(n + 1, n) for n in range(10)]
    log.close()


def test_what_was_ingested_and_deleted_is_not_missed(tmp_path: Path) -> None:
    log = open_log(tmp_path, settings=TINY)
    add(log, 1)
    add(log, 2)
    add(log, 3)
    spark = reader(log)
    assert through(spark, 0) == 3
    log.ingested(2)
    assert rows(reader(log), 0, 2) == []
    assert rows(reader(log), 2, 3) == [(3, 3)]
    log.close()


def test_damage_is_noticed(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    add(log, 1)
    log.close()
    path = segments(tmp_path)[0]
    data = bytearray(path.read_bytes())
    data[data.find(b"text 1")] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedError, match="damaged"):
        rows(reader(log), 0, 1)
