"""Results on disk: Parquet for each execution, sorted by subscription.

Small results are one file, large ones a folder of files that Spark's tasks have written
(result_writing.py).  Both are written under another name, then renamed, and have the same name, so
Spark and pandas read them alike.  They count once the catalog lists their execution as done;
otherwise they are written again.

    _subscription   the rows of a subscription are consecutive, in one file
    _ordinal        their number within it, from 0, in the order of their values
    _bytes          the approximate size of the row when it is sent
    ...             the columns of the channel

Results may be larger than the memory: they are read a row group at a time.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from godwit.datacluster.disk import sync
from godwit.datacluster.sql.channel_query import SUBSCRIPTION

ORDINAL = "_ordinal"
BYTES = "_bytes"
SUFFIX = ".parquet"
ASIDE = ".aside"

Integers = NDArray[np.int64]


class Contents(NamedTuple):
    """Subscriptions with results in an execution, how many rows each has, and their size."""

    subscriptions: Integers
    rows: Integers
    size_bytes: int


class ResultFiles:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._contents = lru_cache(maxsize=256)(self._read_contents)

    def write(self, channel: int, number: int, write: Callable[[Path], None]) -> None:
        """Let `write` make a file or a folder.  On disk when this returns; nothing if it raises."""
        path = self._path(channel, number)
        path.parent.mkdir(exist_ok=True)
        aside = path.with_suffix(ASIDE)
        _remove(aside)
        try:
            write(aside)
            for part in _parts(aside):
                _sync_file(part)
            if aside.is_dir():
                sync(aside)
            _remove(path)  # Of an attempt that was not committed.
            aside.replace(path)
        except BaseException:
            _remove(aside)
            raise
        sync(path.parent)

    def contents(self, channel: int, number: int) -> Contents:
        return self._contents(channel, number)

    def rows(self, channel: int, number: int, first: Mapping[int, int]) -> Iterator[pa.Table]:
        """Rows of the subscriptions in `first`, from the ordinal given for each on.

        A part at a time; those of a subscription follow each other.
        """
        wanted = np.array(sorted(first), dtype=np.int64)
        starts = np.array([first[id] for id in wanted.tolist()], dtype=np.int64)
        for part in _parts(self._path(channel, number)):
            with pq.ParquetFile(part) as file:
                for group in _groups_with(file.metadata, wanted):
                    table = file.read_row_group(group)
                    ids = table[SUBSCRIPTION].to_numpy()
                    place = np.searchsorted(wanted, ids).clip(max=len(wanted) - 1)
                    is_later = table[ORDINAL].to_numpy() >= starts[place]
                    yield table.filter(pa.array((wanted[place] == ids) & is_later))

    def remove(self, channel: int, number: int) -> None:
        _remove(self._path(channel, number))

    def remove_channel(self, channel: int) -> None:
        shutil.rmtree(self._folder / str(channel), ignore_errors=True)

    def remove_all_but(self, kept: set[tuple[int, int]]) -> None:
        """Remove the files of executions that are not done, and of channels that do not exist."""
        for folder in self._folder.iterdir():
            for path in folder.iterdir():
                is_result = path.suffix == SUFFIX and path.stem.isdigit()
                if not is_result or (int(folder.name), int(path.stem)) not in kept:
                    _remove(path)
            if not any(folder.iterdir()):
                folder.rmdir()

    def _path(self, channel: int, number: int) -> Path:
        return self._folder / str(channel) / f"{number}{SUFFIX}"

    def _read_contents(self, channel: int, number: int) -> Contents:
        rows: dict[int, int] = {}
        size_bytes = 0
        for part in _parts(self._path(channel, number)):
            with pq.ParquetFile(part) as file:
                for group in range(file.metadata.num_row_groups):
                    table = file.read_row_group(group, columns=[SUBSCRIPTION, BYTES])
                    ids, counts = np.unique(table[SUBSCRIPTION].to_numpy(), return_counts=True)
                    for id, count in zip(ids.tolist(), counts.tolist(), strict=True):
                        rows[id] = rows.get(id, 0) + count
                    size_bytes += int(np.sum(table[BYTES].to_numpy()))
        ids = np.array(sorted(rows), np.int64)
        return Contents(ids, np.array([rows[id] for id in ids.tolist()], np.int64), size_bytes)


def _parts(path: Path) -> list[Path]:
    """The files of an execution; raises FileNotFoundError if it has none."""
    if path.is_dir():
        return sorted(path.glob(f"*{SUFFIX}"))
    if not path.exists():
        raise FileNotFoundError(path)
    return [path]


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _groups_with(metadata: Any, wanted: Integers) -> Iterator[int]:
    """Row groups that may hold rows of the subscriptions, which are sorted."""
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(0).statistics
        first = np.searchsorted(wanted, statistics.min)
        if first < len(wanted) and wanted[first] <= statistics.max:
            yield group
