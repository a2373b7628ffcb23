"""Results on disk: a Parquet file for each execution, sorted by subscription.

A file is written under another name, then renamed.  It counts once the catalog lists its execution
as done; otherwise it is written again.

    _subscription   the rows of a subscription are consecutive
    _ordinal        their number within it, from 0, in the order of their values
    _bytes          the approximate size of the row when it is sent
    ...             the columns of the channel
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from godwit.datacluster.disk import sync
from godwit.datacluster.sql.channel_query import SUBSCRIPTION

ORDINAL = "_ordinal"
BYTES = "_bytes"
ROW_GROUP_ROWS = 4_096
#: The size of a number, a timestamp or a boolean.
FIXED_BYTES = 8
SUFFIX = ".parquet"
ASIDE = ".aside"

Integers = NDArray[np.int64]


class Contents(NamedTuple):
    """Subscriptions with results in a file, and how many rows each has."""

    subscriptions: Integers
    rows: Integers


class ResultFiles:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._contents = lru_cache(maxsize=256)(self._read_contents)

    def write(self, channel: int, number: int, results: pa.Table) -> None:
        """Write arranged results.  On disk when this returns; after an OSError there is no file."""
        path = self._path(channel, number)
        path.parent.mkdir(exist_ok=True)
        aside = path.with_suffix(ASIDE)
        try:
            with aside.open("wb") as file:
                pq.write_table(results, file, row_group_size=ROW_GROUP_ROWS, compression="zstd")
                file.flush()
                os.fsync(file.fileno())
            aside.replace(path)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
        sync(path.parent)

    def contents(self, channel: int, number: int) -> Contents:
        return self._contents(channel, number)

    def rows(self, channel: int, number: int, first: Mapping[int, int]) -> pa.Table:
        """Rows of the subscriptions in `first`, from the ordinal given for each on."""
        wanted = np.array(sorted(first), dtype=np.int64)
        starts = np.array([first[id] for id in wanted.tolist()], dtype=np.int64)
        with pq.ParquetFile(self._path(channel, number)) as file:
            groups = list(_groups_with(file.metadata, wanted))
            table = file.read_row_groups(groups)
        ids = table[SUBSCRIPTION].to_numpy()
        place = np.searchsorted(wanted, ids).clip(max=len(wanted) - 1)
        is_wanted = (wanted[place] == ids) & (table[ORDINAL].to_numpy() >= starts[place])
        return table.filter(pa.array(is_wanted))

    def remove(self, channel: int, number: int) -> None:
        self._path(channel, number).unlink(missing_ok=True)

    def remove_channel(self, channel: int) -> None:
        shutil.rmtree(self._folder / str(channel), ignore_errors=True)

    def remove_all_but(self, kept: set[tuple[int, int]]) -> None:
        """Remove the files of executions that are not done, and of channels that do not exist."""
        for folder in self._folder.iterdir():
            for path in folder.iterdir():
                is_result = path.suffix == SUFFIX and path.stem.isdigit()
                if not is_result or (int(folder.name), int(path.stem)) not in kept:
                    path.unlink()
            if not any(folder.iterdir()):
                folder.rmdir()

    def _path(self, channel: int, number: int) -> Path:
        return self._folder / str(channel) / f"{number}{SUFFIX}"

    def _read_contents(self, channel: int, number: int) -> Contents:
        table = pq.read_table(self._path(channel, number), columns=[SUBSCRIPTION])
        subscriptions, rows = np.unique(table[SUBSCRIPTION].to_numpy(), return_counts=True)
        return Contents(subscriptions, rows.astype(np.int64))


def arranged(results: pa.Table) -> pa.Table:
    """Results as they are stored: sorted, numbered and with sizes."""
    results = _with_plain_types(results)
    order = [(name, "ascending") for name in results.column_names]
    results = results.sort_by(order).combine_chunks()
    ids = results[SUBSCRIPTION].to_numpy()
    is_first = np.concatenate([[True], ids[1:] != ids[:-1]]) if len(ids) else np.zeros(0, bool)
    starts = np.flatnonzero(is_first)
    ordinals = np.arange(len(ids)) - np.repeat(starts, np.diff([*starts, len(ids)]))
    values = results.drop_columns([SUBSCRIPTION])
    columns = {
        SUBSCRIPTION: pa.array(ids, pa.int64()),
        ORDINAL: pa.array(ordinals, pa.int64()),
        BYTES: pa.array(_sizes_bytes(values), pa.int64()),
    }
    for name in values.column_names:
        columns[name] = values[name]
    return pa.table(columns)


def _with_plain_types(results: pa.Table) -> pa.Table:
    """Decimals become doubles, the only non-integers that clients receive."""
    fields = [
        field.with_type(pa.float64()) if pa.types.is_decimal(field.type) else field
        for field in results.schema
    ]
    return results.cast(pa.schema(fields))


def _sizes_bytes(values: pa.Table) -> Integers:
    """Sizes of names and values of all columns."""
    sizes = np.full(values.num_rows, sum(map(len, values.column_names)), dtype=np.int64)
    for column in values.columns:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            lengths = pc.fill_null(pc.binary_length(column), 0)
            sizes += lengths.to_numpy().astype(np.int64)
        else:
            sizes += FIXED_BYTES
    return sizes


def _groups_with(metadata: Any, wanted: Integers) -> Iterator[int]:
    """Row groups that may hold rows of the subscriptions, which are sorted."""
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(0).statistics
        first = np.searchsorted(wanted, statistics.min)
        if first < len(wanted) and wanted[first] <= statistics.max:
            yield group
