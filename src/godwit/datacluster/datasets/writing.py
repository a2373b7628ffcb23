"""A data frame becomes Parquet files: each task writes one, with Arrow.

Spark's own writer prepares and commits files in many small steps; for a batch of a few records that
takes longer than everything else.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

#: Of a row group, before it is compressed: what a task has in memory.
ROW_GROUP_BYTES = 32 * 2**20


class GroupedWriter:
    """Writes batches, small or large, as row groups of one size.

    Each row group costs a reader a look at its statistics and a piece of every column.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._file = pq.ParquetWriter(path, schema)
        self._waiting: list[pa.RecordBatch] = []
        self._size_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        with self._file:
            self._flush()

    def write(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._size_bytes += batch.nbytes
        if self._size_bytes >= ROW_GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            table = pa.Table.from_batches(self._waiting)
            self._file.write_table(table, row_group_size=max(1, table.num_rows))
        self._waiting.clear()
        self._size_bytes = 0


def write_files(records: DataFrame, folder: Path) -> None:
    """Write into a new folder, on a file system that all executors share."""
    folder.mkdir(parents=True)
    written = records.mapInArrow(_writing(folder), "name string").collect()
    names = {row["name"] for row in written}
    for path in folder.iterdir():
        if path.name not in names:  # Left by a task that failed and was repeated.
            path.unlink()


def _writing(folder: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return
        name = f"{uuid.uuid4().hex}.parquet"
        with GroupedWriter(folder / name, first.schema) as writer:
            writer.write(first)
            for batch in batches:
                writer.write(batch)
        yield pa.record_batch({"name": [name]})

    return write
