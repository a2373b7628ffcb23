"""Results: notices, pulls, acknowledgements, and how long they are kept."""

from __future__ import annotations

import errno
import resource
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.datacluster.memory_snapshots import MemorySnapshots
from tests.datacluster.small_cluster import FAILING, START, ids, make, opened, report

from godwit.datacluster.channels import Channels
from godwit.datacluster.result_files import ResultFiles, arranged
from godwit.datacluster.results import Notice
from godwit.datacluster.subscriptions import Position

EVERYTHING = 10_000


def test_brokers_are_told_what_concerns_them(
    channels: Channels, snapshots: MemorySnapshots
) -> None:
    fire = channels.subscribe("A", "OfType", {"type": "fire"}).id
    flood = channels.subscribe("B", "OfType", {"type": "flood"}).id
    report(snapshots, 1, 2)
    channels.execute("OfType", now_s=10.0)
    report(snapshots, 3, type="flood")
    channels.execute("OfType", now_s=20.0)
    of_a, of_b = channels.notices("A", after=0), channels.notices("B", after=0)
    assert of_a.notices == [Notice(1, "OfType", 1, [fire], [20])]
    assert of_b.notices == [Notice(2, "OfType", 2, [flood], [10])]
    assert (of_a.through, of_b.through) == (2, 2)
    assert channels.notices("A", after=2).notices == []


def test_who_comes_later_is_not_told_of_what_was(
    channels: Channels, snapshots: MemorySnapshots
) -> None:
    channels.subscribe("A", "OfType", {"type": "fire"})
    report(snapshots, 1)
    channels.execute("OfType", now_s=10.0)
    channels.subscribe("B", "OfType", {"type": "fire"})
    assert channels.notices("B", after=0).notices == []


def test_a_pull_goes_on_where_the_last_one_ended(
    channels: Channels, snapshots: MemorySnapshots
) -> None:
    fire = channels.subscribe("A", "OfType", {"type": "fire"}).id
    report(snapshots, 1, 2, 3)
    channels.execute("OfType", now_s=10.0)
    report(snapshots, 4)
    channels.execute("OfType", now_s=20.0)
    first = channels.pull("OfType", {fire: START}, limit_bytes=20)
    assert [(row.execution, row.ordinal) for row in first.rows] == [(1, 0), (1, 1)]
    assert not first.is_complete
    rest = channels.pull("OfType", {fire: Position(1, 1)}, limit_bytes=EVERYTHING)
    assert [(row.execution, row.ordinal) for row in rest.rows] == [(1, 2), (2, 0)]
    assert rest.is_complete
    tiny = channels.pull("OfType", {fire: START}, limit_bytes=1)
    assert len(tiny.rows) == 1, "at least one, however large"
    assert channels.pull("OfType", {}, limit_bytes=1).rows == []


def test_results_are_kept_until_every_holder_has_them(
    channels: Channels, snapshots: MemorySnapshots
) -> None:
    fire = channels.subscribe("A", "OfType", {"type": "fire"}).id
    channels.subscribe("B", "OfType", {"type": "fire"})
    report(snapshots, 1, 2)
    channels.execute("OfType", now_s=10.0)
    channels.acknowledge("A", {fire: Position(1, 1)})
    channels.acknowledge("B", {fire: Position(1, 0)})
    channels.tidy(now_s=20.0)
    assert ids(channels, fire) == [1, 2]
    channels.acknowledge("B", {fire: Position(1, 1)})
    channels.acknowledge("B", {fire: Position(1, 0)})  # Late: changes nothing.
    channels.tidy(now_s=20.0)
    pulled = channels.pull("OfType", {fire: START}, limit_bytes=EVERYTHING)
    assert (pulled.rows, pulled.kept_from) == ([], 2)
    assert channels.notices("A", after=0).notices == []


def test_results_that_nobody_acknowledges_are_not_kept_for_ever(
    channels: Channels, snapshots: MemorySnapshots
) -> None:
    fire = channels.subscribe("A", "OfType", {"type": "fire"}).id
    for execution in range(3):
        report(snapshots, execution)
        channels.execute("OfType", now_s=600.0 * execution)
    channels.tidy(now_s=1_700.0)
    pulled = channels.pull("OfType", {fire: START}, limit_bytes=EVERYTHING)
    assert [row.execution for row in pulled.rows] == [3]
    assert pulled.kept_from == 3, "who is at 0 can see that something is missing"


def test_files_that_do_not_count_are_removed(
    spark: SparkSession, channels: Channels, snapshots: MemorySnapshots, tmp_path: Path
) -> None:
    fire = channels.subscribe("A", "OfType", {"type": "fire"}).id
    report(snapshots, 1)
    channels.execute("OfType", now_s=10.0)
    folder = tmp_path / "results" / "1"
    (folder / "2.parquet").write_bytes(b"of an execution that was not done")
    (folder / "3.aside").write_bytes(b"half")
    (tmp_path / "results" / "9").mkdir()
    again = opened(spark, snapshots, tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == ["1.parquet"]
    assert not (tmp_path / "results" / "9").exists()
    assert ids(again, fire) == [1]


def test_a_dropped_channel_leaves_nothing(
    channels: Channels, snapshots: MemorySnapshots, tmp_path: Path
) -> None:
    channels.subscribe("A", "OfType", {"type": "fire"})
    report(snapshots, 1)
    channels.execute("OfType", now_s=10.0)
    assert channels.reading("reports") == ["OfType"]
    make(channels, "DROP CHANNEL OfType")
    assert list((tmp_path / "results").iterdir()) == []
    assert (channels.all(), channels.reading("Reports")) == ([], [])
    assert channels.notices("A", after=0).notices == []


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file may become larger than a page: what a full disk looks like."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("small_files")
def test_a_full_disk_leaves_no_half_file(tmp_path: Path) -> None:
    files = ResultFiles(tmp_path)
    texts = [str(hash(str(n))) for n in range(2_000)]
    large = arranged(pa.table({"_subscription": [1] * 2_000, "text": texts}))
    with pytest.raises(OSError, match="File too large"):
        files.write(1, 1, large)
    assert list((tmp_path / "1").iterdir()) == []
    files.write(1, 1, arranged(pa.table({"_subscription": [1], "text": ["small"]})))
    assert files.contents(1, 1).subscriptions.tolist() == [1]


def test_a_full_disk_costs_time_and_no_results(
    spark: SparkSession, snapshots: MemorySnapshots, tmp_path: Path
) -> None:
    is_full = True

    def step(name: str) -> None:
        if name == "evaluated" and is_full:
            raise OSError(errno.ENOSPC, "No space left on device")

    channels = opened(spark, snapshots, tmp_path, step=step)
    make(channels, "CREATE CHANNEL OfType(type STRING) CONTINUOUS AS"
         " SELECT id FROM NEW Reports WHERE type = :type")  # fmt: skip
    fire = channels.subscribe("A", "OfType", {"type": "fire"}).id
    report(snapshots, 1)
    failed = channels.execute("OfType", now_s=10.0)
    assert failed is not None
    assert (failed.state, failed.attempts) == ("planned", 1)
    assert "No space left" in (failed.error or "")
    report(snapshots, 2)
    is_full = False
    channels.execute("OfType", now_s=20.0)
    channels.execute("OfType", now_s=30.0)
    assert ids(channels, fire) == [1, 2]


def test_a_channel_that_fails_can_be_passed_over(
    channels: Channels, snapshots: MemorySnapshots
) -> None:
    make(channels, FAILING)
    channels.subscribe("A", "Failing", {"type": "fire"})
    report(snapshots, 1)
    before = channels.oldest_needed("Reports")
    failed = channels.execute("Failing", now_s=10.0)
    assert failed is not None
    assert "CAST_INVALID_INPUT" in (failed.error or "")
    assert channels.oldest_needed("Reports") == before == 0, "it will be read again"
    assert channels.skip("Failing", now_s=20.0)
    assert not channels.skip("Failing", now_s=20.0)
    channels.execute("OfType", now_s=20.0)
    assert channels.oldest_needed("Reports") == 1
    assert channels.execute("Failing", now_s=30.0) is None


def test_one_bad_record_is_null_and_fails_nobody(
    channels: Channels, snapshots: MemorySnapshots
) -> None:
    make(
        channels,
        """CREATE CHANNEL Careful(type STRING, by DOUBLE) EVERY 10 SECONDS AS
        SELECT id, severity / :by AS quotient, cast(type AS INT) AS number,
        id * 9223372036854775807 AS product FROM NEW Reports WHERE type = :type""",
    )
    subscribed = channels.subscribe("A", "Careful", {"type": "fire", "by": 0.0})
    report(snapshots, 7)
    outcome = channels.execute("Careful", now_s=10.0)
    assert outcome is not None
    assert outcome.error is None
    (row,) = channels.pull("Careful", {subscribed.id: START}, limit_bytes=EVERYTHING).rows
    assert row.values == {"id": 7, "quotient": None, "number": None, "product": None}


def test_the_moment_is_that_of_the_execution(
    channels: Channels, snapshots: MemorySnapshots
) -> None:
    make(
        channels,
        """CREATE CHANNEL Now(type STRING) EVERY 10 SECONDS AS
        SELECT id, current_timestamp() AS moment FROM NEW Reports WHERE type = :type""",
    )
    subscribed = channels.subscribe("A", "Now", {"type": "fire"})
    report(snapshots, 7)
    channels.execute("Now", now_s=86_400.0)
    (row,) = channels.pull("Now", {subscribed.id: START}, limit_bytes=EVERYTHING).rows
    assert str(row.values["moment"]) == "1970-01-02 00:00:00+00:00"
