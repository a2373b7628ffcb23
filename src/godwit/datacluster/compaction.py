"""Many small files become few large ones, in the background.

    plan     which files of a dataset to merge next: pure
    compact  merge them, and put the result in their place in one transaction

Files of about one size are merged when there are `fan_in` of them in a row, so that a record is
rewritten a few times only, however long the history: once for each level of size.  `_batch` stays
with each record: what is new since a batch can be told from a merged file as well.

Of a dataset with a key there is also a *base*: one record for each key.  Batches up to the
`horizon`, which nobody asks for one by one any more, are folded into it when they are many enough
to be worth it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from pathlib import Path

import msgspec
import pyarrow.parquet as pq

from godwit.datacluster.definitions import Known
from godwit.datacluster.files import StoredFile
from godwit.datacluster.schemas import spark_schema, stored
from godwit.datacluster.storage import Storage, latest
from godwit.datacluster.writing import write_files


class CompactionSettings(msgspec.Struct, frozen=True):
    fan_in: int = 8
    """Files of a size that become one of the next."""

    level_bytes: int = 8 * 2**10
    """Files up to here are of the smallest size."""

    file_bytes: int = 128 * 2**20
    """Larger files are left alone."""

    fold_rows: int = 20_000
    fold_ratio: float = 0.25
    """So many rows, and this share of the base, are folded into it."""


class Merge(msgspec.Struct, frozen=True):
    """Files that are to become one."""

    files: list[StoredFile]
    is_fold: bool = False
    """Into the base; a base that there is, is one of the files."""


def plan(
    files: Sequence[StoredFile], settings: CompactionSettings, *, fold_through: int | None
) -> Merge | None:
    """What to do next with the files of a dataset, which come in the order of their batches.

    `fold_through` is the horizon of a dataset with a key, None without.
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
        together = _row_of(level, levels, settings.fan_in)
        if together is not None:
            return Merge(list(others[together]))
    return None


def _row_of(level: int, levels: Sequence[int | None], count: int) -> slice | None:
    """Where `count` files of a level follow each other, perhaps with smaller ones in between."""
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
    """Files of a level are of about one size; None is for those that are large enough."""
    if file.size_bytes >= settings.file_bytes:
        return None
    return int(log(max(file.size_bytes / settings.level_bytes, 1.0), settings.fan_in))


def compact(storage: Storage, known: Known, horizon: int, settings: CompactionSettings) -> bool:
    """One step; False if nothing was to be done."""
    files = storage.files.of(known.id)
    fold_through = horizon if known.dataset.key is not None else None
    merge = plan(files, settings, fold_through=fold_through)
    if merge is None:
        return False
    with storage.folders.staging() as staged:
        if merge.is_fold:
            _fold(storage, known, merge.files, staged)
        else:
            _concatenate(storage, known, merge.files, staged)
        made = storage.folders.publish(known.id, staged, is_base=merge.is_fold)
    return storage.replace(known, merge.files, made)


def _fold(storage: Storage, known: Known, files: Sequence[StoredFile], staged: Path) -> None:
    """By Spark: it may be as large as the dataset."""
    paths = [storage.folders.uri(file) for file in files]
    records = storage.spark.read.schema(spark_schema(known.dataset)).parquet(*paths)
    write_files(latest(records, known.dataset), staged)


def _concatenate(storage: Storage, known: Known, files: Sequence[StoredFile], staged: Path) -> None:
    """Row group by row group: a job of Spark would take longer to start than this takes."""
    schema = stored(known.dataset)
    staged.mkdir()
    with pq.ParquetWriter(staged / "merged.parquet", schema) as writer:
        for file in files:
            parquet = pq.ParquetFile(storage.folders.path(file))
            for group in range(parquet.num_row_groups):
                writer.write_table(parquet.read_row_group(group).cast(schema))
