"""A data frame becomes Parquet files: each task writes one, with Arrow.

Spark's own writer prepares and commits files in many small steps; for a batch of a few records that
takes longer than everything else.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame


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
        with pq.ParquetWriter(folder / name, first.schema) as writer:
            writer.write_batch(first)
            for batch in batches:
                writer.write_batch(batch)
        yield pa.record_batch({"name": [name]})

    return write
