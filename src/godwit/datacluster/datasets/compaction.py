"""Compaction: many small files become few large ones, in the background.

    plan     which files of a dataset to merge next: pure
    compact  merge them, and replace them by the result in one transaction

Files of about one size are merged when `fan_in` of them are in a row, so that a record is rewritten
only a few times, however long the history: once for each level of size.  Each record keeps its
`_batch`: the records after a batch can be read from a merged file as well.

A dataset with a key also has a *base*: one record for each key.  Batches up to the `horizon`, which
no channel will read one by one any more, are folded into the base when they have enough records.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from pathlib import Path

import msgspec
import pyarrow.parquet as pq

from godwit.datacluster.datasets.definitions import DatasetEntry
from godwit.datacluster.datasets.files import StoredFile
from godwit.datacluster.datasets.storage import Storage, latest
from godwit.datacluster.datasets.writing import GroupedWriter, write_files
from godwit.datacluster.model.schemas import spark_schema, stored


class CompactionSettings(msgspec.Struct, frozen=True):
    fan_in: int = 8
    """Number of files of a level that are merged into one of the next."""

    level_bytes: int = 8 * 2**10
    """Files up to this size are of the lowest level."""

    file_bytes: int = 128 * 2**20
    """Files from this size on are not merged."""

    fold_rows: int = 20_000
    fold_ratio: float = 0.25
    """Batches are folded when they have so many rows, and this share of the base."""


class Merge(msgspec.Struct, frozen=True):
    """Files to merge into one."""

    files: list[StoredFile]
    is_fold: bool = False
    """The result is the base; the base so far, if any, is one of the files."""


def plan(
    files: Sequence[StoredFile], settings: CompactionSettings, *, fold_through: int | None
) -> Merge | None:
    """The next merge for a dataset, or None.  `files` are in the order of their batches.

    `fold_through` is the horizon of a dataset with a key, None without a key.
    """
    base = [file for file in files if file.is_base]
    others = [file for file in files if not file.is_base]
    if fold_through is not None:
        ripe = [file for file in others if file.last_batch <= fold_through]
        rows = sum(file.rows for file in ripe)
        base_rows = sum(file.rows for file in base)
        if rows >= max(settings.fold_rows, settings.fold_ratio * base_rows):
            return Merge([*base, *ripe], is_fold=True)
    levels = [_level(file, settings) for file in others]
    for level in sorted({each for each in levels if each is not None}):
        run = _find_run(level, levels, settings.fan_in)
        if run is not None:
            return Merge(list(others[run]))
    return None


def _find_run(level: int, levels: Sequence[int | None], count: int) -> slice | None:
    """The first `count` files of a level in a row; smaller ones may be in between."""
    start, found = 0, 0
    for place, each in enumerate(levels):
        if each is None or each > level:
            start, found = place + 1, 0
        elif each == level:
            found += 1
            if found == count:
                return slice(start, place + 1)
    return None


def _level(file: StoredFile, settings: CompactionSettings) -> int | None:
    """The level of a file by its size; None if it is large enough."""
    if file.size_bytes >= settings.file_bytes:
        return None
    return int(log(max(file.size_bytes / settings.level_bytes, 1.0), settings.fan_in))


def compact(
    storage: Storage, entry: DatasetEntry, horizon: int, settings: CompactionSettings
) -> bool:
    """Carry out one merge; False if none was planned."""
    files = storage.files.of(entry.id)
    fold_through = horizon if entry.dataset.key is not None else None
    merge = plan(files, settings, fold_through=fold_through)
    if merge is None:
        return False
    with storage.folders.staging() as staged:
        if merge.is_fold:
            _fold(storage, entry, merge.files, staged)
        else:
            _concatenate(storage, entry, merge.files, staged)
        made = storage.folders.publish(entry.id, staged, is_base=merge.is_fold)
    return storage.replace(entry, merge.files, made)


def _fold(storage: Storage, entry: DatasetEntry, files: Sequence[StoredFile], staged: Path) -> None:
    """With Spark: the result may be as large as the dataset."""
    paths = [storage.folders.uri(file) for file in files]
    records = storage.spark.read.schema(spark_schema(entry.dataset)).parquet(*paths)
    write_files(latest(records, entry.dataset), staged)


def _concatenate(
    storage: Storage, entry: DatasetEntry, files: Sequence[StoredFile], staged: Path
) -> None:
    """A row group at a time: faster than the start of a Spark job."""
    schema = stored(entry.dataset)
    staged.mkdir()
    with GroupedWriter(staged / "merged.parquet", schema) as writer:
        for file in files:
            with pq.ParquetFile(storage.folders.path(file)) as parquet:
                for group in range(parquet.num_row_groups):
                    for batch in parquet.read_row_group(group).cast(schema).to_batches():
                        writer.write(batch)
