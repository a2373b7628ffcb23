"""Results: notices, pulls, acknowledgements, and how long they are kept."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.datacluster.faulty_channels import FullDiskChannels
from tests.datacluster.memory_snapshots import MemorySnapshots
from tests.datacluster.small_cluster import (
    FAILING,
    OF_TYPE,
    START,
    acknowledge,
    ids,
    make,
    notices,
    opened,
    report,
    rows,
    stored,
    subscribe,
)

from godwit.api.datacluster_api import Notice
from godwit.datacluster.catalog import Catalog
from godwit.datacluster.channels.channel_service import ChannelService
from godwit.datacluster.channels.executions import Execution
from godwit.datacluster.channels.result_files import ResultFiles
from godwit.datacluster.channels.result_writing import ResultWriter
from godwit.spark.supervised import SupervisedSpark


def test_brokers_are_told_what_concerns_them(
    channels: ChannelService, snapshots: MemorySnapshots
) -> None:
    fire = subscribe(channels, "A", "OfType", type="fire")
    flood = subscribe(channels, "B", "OfType", type="flood")
    report(snapshots, 1, 2)
    channels.execute("OfType", now_s=10.0)
    report(snapshots, 3, type="flood")
    channels.execute("OfType", now_s=20.0)
    of_a, of_b = notices(channels, "A"), notices(channels, "B")
    assert of_a.notices == [Notice(number=1, channel="OfType", execution=1, subscriptions=[fire])]
    assert of_b.notices == [Notice(number=2, channel="OfType", execution=2, subscriptions=[flood])]
    assert (of_a.through, of_b.through) == (2, 2)
    assert notices(channels, "A", after=2).notices == []


def test_who_comes_later_is_not_told_of_what_was(
    channels: ChannelService, snapshots: MemorySnapshots
) -> None:
    subscribe(channels, "A", "OfType", type="fire")
    report(snapshots, 1)
    channels.execute("OfType", now_s=10.0)
    subscribe(channels, "B", "OfType", type="fire")
    assert notices(channels, "B").notices == []


def test_results_are_announced_when_they_can_be_pulled(
    spark: SparkSession, snapshots: MemorySnapshots, tmp_path: Path
) -> None:
    """Once for each execution with rows; not for one without, nor for one that fails."""
    announced: list[int] = []

    def on_results() -> None:
        announced.append(notices(channels, "A").through)

    catalog = Catalog(tmp_path)
    channels = ChannelService(
        SupervisedSpark(lambda: spark), catalog, snapshots, tmp_path, on_results=on_results
    )
    make(channels, OF_TYPE, FAILING)
    for channel in ("OfType", "Failing"):
        subscribe(channels, "A", channel, type="fire")
    report(snapshots, 1, type="flood")
    channels.execute("OfType", now_s=10.0)
    assert announced == []
    report(snapshots, 2)
    channels.execute("OfType", now_s=20.0)
    channels.execute("Failing", now_s=20.0)
    assert announced == [1]


def test_a_pull_goes_on_where_the_last_one_ended(
    channels: ChannelService, snapshots: MemorySnapshots
) -> None:
    fire = subscribe(channels, "A", "OfType", type="fire")
    report(snapshots, 1, 2, 3)
    channels.execute("OfType", now_s=10.0)
    report(snapshots, 4)
    channels.execute("OfType", now_s=20.0)
    first = stored(channels, {fire: START}, limit_bytes=20)[fire]
    assert (rows(first), first.end) == ([(1, 0), (1, 1)], (1, 2))
    rest = stored(channels, {fire: first.end})[fire]
    assert (rows(rest), rest.end) == ([(1, 2), (2, 0)], (3, 0))
    tiny = stored(channels, {fire: START}, limit_bytes=1)[fire]
    assert rows(tiny) == [(1, 0)], "at least one, however large"


def test_results_are_kept_until_every_holder_has_them(
    channels: ChannelService, snapshots: MemorySnapshots
) -> None:
    fire = subscribe(channels, "A", "OfType", type="fire")
    subscribe(channels, "B", "OfType", type="fire")
    report(snapshots, 1, 2)
    channels.execute("OfType", now_s=10.0)
    acknowledge(channels, "A", fire, (1, 2))
    acknowledge(channels, "B", fire, (1, 1))
    channels.tidy(now_s=20.0)
    assert ids(channels, fire) == [1, 2]
    acknowledge(channels, "B", fire, (1, 2))
    acknowledge(channels, "B", fire, (1, 1))  # Late: changes nothing.
    channels.tidy(now_s=20.0)
    assert ids(channels, fire) == []
    assert notices(channels, "A").notices == []


def test_results_that_nobody_acknowledges_are_not_kept_for_ever(
    channels: ChannelService, snapshots: MemorySnapshots
) -> None:
    fire = subscribe(channels, "A", "OfType", type="fire")
    for execution in range(3):
        report(snapshots, execution)
        channels.execute("OfType", now_s=600.0 * execution)
    channels.tidy(now_s=1_700.0)
    assert rows(stored(channels, {fire: START})[fire]) == [(3, 0)]


def test_files_that_do_not_count_are_removed(
    spark: SparkSession, channels: ChannelService, snapshots: MemorySnapshots, tmp_path: Path
) -> None:
    fire = subscribe(channels, "A", "OfType", type="fire")
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
    channels: ChannelService, snapshots: MemorySnapshots, tmp_path: Path
) -> None:
    subscribe(channels, "A", "OfType", type="fire")
    report(snapshots, 1)
    channels.execute("OfType", now_s=10.0)
    assert channels.reading("reports") == ["OfType"]
    make(channels, "DROP CHANNEL OfType")
    assert list((tmp_path / "results").iterdir()) == []
    assert (channels.all(), channels.reading("Reports")) == ([], [])
    assert notices(channels, "A").notices == []


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
    writer, execution = ResultWriter(files), Execution(1, 1, {}, 0, 0.0)
    texts = [str(hash(str(n))) for n in range(2_000)]
    with pytest.raises(OSError, match="File too large"):
        writer.write_here(execution, pa.table({"_subscription": [1] * 2_000, "text": texts}))
    assert list((tmp_path / "1").iterdir()) == []
    writer.write_here(execution, pa.table({"_subscription": [1], "text": ["small"]}))
    assert files.contents(1, 1).subscriptions.tolist() == [1]


def test_a_full_disk_costs_time_and_no_results(
    spark: SparkSession, snapshots: MemorySnapshots, tmp_path: Path
) -> None:
    channels = opened(spark, snapshots, tmp_path, FullDiskChannels)
    assert isinstance(channels, FullDiskChannels)
    make(channels, "CREATE CHANNEL OfType(type STRING) CONTINUOUS AS"
         " SELECT id FROM NEW Reports WHERE type = :type")  # fmt: skip
    fire = subscribe(channels, "A", "OfType", type="fire")
    report(snapshots, 1)
    failed = channels.execute("OfType", now_s=10.0)
    assert failed is not None
    assert (failed.state, failed.attempts) == ("planned", 1)
    assert "No space left" in (failed.error or "")
    report(snapshots, 2)
    channels.writer.is_full = False
    channels.execute("OfType", now_s=20.0)
    channels.execute("OfType", now_s=30.0)
    assert ids(channels, fire) == [1, 2]


def test_a_channel_that_fails_can_be_passed_over(
    channels: ChannelService, snapshots: MemorySnapshots
) -> None:
    make(channels, FAILING)
    subscribe(channels, "A", "Failing", type="fire")
    report(snapshots, 1)
    before = channels.oldest_needed()["reports"]
    failed = channels.execute("Failing", now_s=10.0)
    assert failed is not None
    assert "CAST_INVALID_INPUT" in (failed.error or "")
    assert channels.oldest_needed()["reports"] == before == 0, "it will be read again"
    skipped = channels.skip("Failing", now_s=20.0)
    assert skipped is not None
    assert (skipped.number, skipped.attempts, skipped.error) == (1, 1, failed.error)
    assert channels.skip("Failing", now_s=20.0) is None
    channels.execute("OfType", now_s=20.0)
    assert channels.oldest_needed()["reports"] == 1
    assert channels.execute("Failing", now_s=30.0) is None


def test_one_bad_record_is_null_and_fails_nobody(
    channels: ChannelService, snapshots: MemorySnapshots
) -> None:
    make(
        channels,
        """CREATE CHANNEL Careful(type STRING, divisor DOUBLE) EVERY 10 SECONDS AS
        SELECT id, severity / :divisor AS quotient, cast(type AS INT) AS number,
        id * 9223372036854775807 AS product FROM NEW Reports WHERE type = :type""",
    )
    id = subscribe(channels, "A", "Careful", type="fire", divisor=0.0)
    report(snapshots, 7)
    outcome = channels.execute("Careful", now_s=10.0)
    assert outcome is not None
    assert outcome.error is None
    (results,) = stored(channels, {id: START}, "Careful")[id].results
    assert results.rows == [{"id": 7}]


def test_the_moment_is_that_of_the_execution(
    channels: ChannelService, snapshots: MemorySnapshots
) -> None:
    make(
        channels,
        """CREATE CHANNEL Now(type STRING) EVERY 10 SECONDS AS
        SELECT id, current_timestamp() AS moment FROM NEW Reports WHERE type = :type""",
    )
    id = subscribe(channels, "A", "Now", type="fire")
    report(snapshots, 7)
    channels.execute("Now", now_s=86_400.0)
    (results,) = stored(channels, {id: START}, "Now")[id].results
    assert results.rows == [{"id": 7, "moment": "1970-01-02T00:00:00+00:00"}]
