"""Stored datasets as channels read them, through compaction, retention and restarts."""

from __future__ import annotations

import threading
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.datacluster.stocking import KEYED, UNKEYED, made, open_storage, rows, store
from tests.sweeps import seeds

from godwit.datacluster.channels.snapshots import Snapshots
from godwit.datacluster.datasets.compaction import CompactionSettings, compact
from godwit.datacluster.datasets.housekeeping import Housekeeping, HousekeepingSettings
from godwit.datacluster.datasets.retention import Retention
from godwit.datacluster.datasets.storage import Storage
from godwit.errors import UsageError

EAGER = CompactionSettings(fan_in=2, fold_rows=4, fold_ratio=0.0)


def files_on_disk(folder: Path) -> int:
    return len(list((folder / "data").glob("*/*.parquet")))


def test_an_empty_dataset_has_columns(spark: SparkSession, tmp_path: Path) -> None:
    storage, known = made(spark, tmp_path, KEYED)
    snapshots: Snapshots = storage
    assert snapshots.dataset("PLACES") == known.dataset
    assert snapshots.last_batch("places") == 0
    columns = ["user", "at", "n", "_accepted_s", "_position", "_batch"]
    assert snapshots.frame("places", through=0).columns == columns
    assert rows(snapshots.new("places", after=0, through=5)) == []
    with pytest.raises(UsageError, match="there is no dataset nothing"):
        snapshots.frame("nothing", through=0)


@pytest.mark.parametrize("seed", range(seeds(1, whole=3)))
def test_compaction_changes_nothing_that_can_be_seen(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    """With and without a key, compared with lists, for any batch from the horizon on."""
    random = Random(seed)
    for number, statement in enumerate((KEYED, UNKEYED)):
        folder = tmp_path / str(number)
        storage, known = made(spark, folder, statement)
        model: list[tuple[str, int, int]] = []
        horizon = 0
        merges = 0
        for _ in range(8):
            users = [f"u{random.randrange(5)}" for _ in range(random.randrange(5))]
            batch = store(storage, known, users)
            model += [(user, len(model) + 1 + i, batch) for i, user in enumerate(users)]
            horizon = random.randint(horizon, batch)
            merges += compact(storage, known, horizon, EAGER)
            if random.random() < 0.2:
                storage.close()
                storage = open_storage(spark, folder)
            through = random.randint(horizon, batch)
            after = random.randint(horizon, through)
            seen = [row for row in model if row[2] <= through]
            latest = {row[0]: row for row in seen}
            expected = sorted(latest.values(), key=lambda row: row[1])
            if statement == UNKEYED:
                expected = seen
            assert rows(storage.frame("Places", through=through)) == expected
            new = [row for row in seen if row[2] > after]
            assert rows(storage.new("Places", after=after, through=through)) == new
        assert merges
        storage.delete_dropped(grace_s=0.0)
        assert files_on_disk(folder) == len(storage.files.of(known.id))
        storage.close()


def test_compaction_merges_row_groups(spark: SparkSession, tmp_path: Path) -> None:
    storage, known = made(spark, tmp_path, UNKEYED)
    for number in range(8):
        store(storage, known, [f"u{number}", "v"])
    assert compact(storage, known, 0, CompactionSettings(fan_in=8))
    (merged,) = storage.files.of(known.id)
    assert merged.rows == 16
    assert pq.read_metadata(storage.folders.path(merged)).num_row_groups == 1
    storage.close()


def test_below_the_horizon_the_latest_of_each_key_is_left(
    spark: SparkSession, tmp_path: Path
) -> None:
    storage, known = made(spark, tmp_path, KEYED)
    store(storage, known, ["a", "b", "a"])
    store(storage, known, ["a", "c"])
    store(storage, known, ["b"])
    assert compact(storage, known, 2, EAGER)
    *base, later = storage.files.of(known.id)
    assert all(file.is_base for file in base)
    assert (sum(file.rows for file in base), later.first_batch) == (3, 3)
    with pytest.raises(UsageError, match="its state at batch 1 is not kept"):
        storage.frame("Places", through=1)
    with pytest.raises(UsageError, match="records after batch 1 are no longer all kept"):
        storage.new("Places", after=1, through=2)
    assert rows(storage.frame("Places", through=3)) == [("a", 4, 2), ("c", 5, 2), ("b", 6, 3)]


def test_a_base_is_kept_in_memory_until_there_is_another(
    spark: SparkSession, tmp_path: Path
) -> None:
    storage, known = made(spark, tmp_path, KEYED)
    store(storage, known, ["a", "b", "c", "d"])
    compact(storage, known, 1, EAGER)
    storage.frame("Places", through=1)
    _, first = storage._bases[known.id]
    assert first.is_cached
    store(storage, known, ["a", "b", "c", "d"])
    storage.frame("Places", through=2)
    assert storage._bases[known.id][1] is first
    compact(storage, known, 2, EAGER)
    storage.frame("Places", through=2)
    _, second = storage._bases[known.id]
    assert not first.is_cached
    storage.close()
    assert not second.is_cached


def test_files_stay_as_long_as_somebody_reads_them(spark: SparkSession, tmp_path: Path) -> None:
    storage, known = made(spark, tmp_path, UNKEYED)
    store(storage, known, ["a"])
    store(storage, known, ["b"])
    with storage.reading():
        frame = storage.frame("Places", through=2)
        assert compact(storage, known, 0, EAGER)
        assert storage.delete_dropped(grace_s=0.0) == 0
        assert len(rows(frame)) == 2
    assert storage.delete_dropped(grace_s=60.0) == 0
    assert storage.delete_dropped(grace_s=0.0) == 2
    assert files_on_disk(tmp_path) == 1
    assert len(rows(storage.frame("Places", through=2))) == 2


def test_what_a_crash_left_is_deleted_at_the_next_start(
    spark: SparkSession, tmp_path: Path
) -> None:
    storage, known = made(spark, tmp_path, UNKEYED)
    store(storage, known, ["a"])
    (counting,) = (tmp_path / "data" / str(known.id)).iterdir()
    counting.with_name("left.parquet").write_bytes(b"")
    (tmp_path / "data" / "staging" / "left").mkdir()
    store(storage, known, ["b"])
    compact(storage, known, 0, EAGER)
    with pytest.raises(UsageError, match="another process has this open"):
        open_storage(spark, tmp_path)
    assert files_on_disk(tmp_path) == 4, "it may be at work"
    storage.close()
    open_storage(spark, tmp_path)
    assert files_on_disk(tmp_path) == 1
    assert not list((tmp_path / "data" / "staging").iterdir())


def test_a_dataset_that_is_dropped_during_compaction_leaves_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    storage, known = made(spark, tmp_path, UNKEYED)
    store(storage, known, ["a"])
    store(storage, known, ["b"])
    files = storage.files.of(known.id)
    with storage.folders.staging() as staged:
        storage._read(known.dataset, files, after=0, through=2).write.parquet(staged.as_uri())
        merged = storage.folders.publish(known.id, staged)
    storage.forget(known)
    assert not storage.replace(known, files, merged)
    storage.delete_dropped(grace_s=0.0)
    assert files_on_disk(tmp_path) == 0


def test_housekeeping_compacts_and_expires_up_to_the_horizon(
    spark: SparkSession, tmp_path: Path
) -> None:
    storage, known = made(spark, tmp_path, UNKEYED)
    settings = HousekeepingSettings(
        compaction=CompactionSettings(fan_in=2, level_bytes=1, file_bytes=1),
        retention=Retention(age_s_max=1.0),
        grace_s=0.0,
    )
    housekeeping = Housekeeping(storage, lambda _: 2, settings)
    for _ in range(4):
        store(storage, known, ["a"])
    housekeeping.tidy_all()
    assert rows(storage.frame("Places", through=4)) == [("a", 3, 3), ("a", 4, 4)]
    assert files_on_disk(tmp_path) == 2


def test_housekeeping_goes_on_after_a_round_that_fails(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, _ = made(spark, tmp_path, UNKEYED)
    rounds, went_on = iter([True]), threading.Event()

    def delete_dropped(_storage: Storage, *, grace_s: float) -> None:
        if next(rounds, False):
            raise OSError(f"no space left, after {grace_s} s")
        went_on.set()

    monkeypatch.setattr(Storage, "delete_dropped", delete_dropped)
    housekeeping = Housekeeping(storage, lambda _: 0, HousekeepingSettings(interval_s=0.001))
    housekeeping.start()
    try:
        assert went_on.wait(30.0)
    finally:
        housekeeping.stop()
