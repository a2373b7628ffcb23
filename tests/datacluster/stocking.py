"""Datasets with given batches, without a log or a streaming query."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from tests.datacluster.stating import dataset_statement

from godwit.datacluster.catalog import Catalog
from godwit.datacluster.datasets.definitions import DatasetEntry
from godwit.datacluster.datasets.files import IngestProgress
from godwit.datacluster.datasets.storage import Storage
from godwit.datacluster.model.schemas import stored
from godwit.spark.supervised import SupervisedSpark

KEYED = "CREATE DATASET Places (user STRING, at TIMESTAMP, n INT) KEY user"
UNKEYED = "CREATE DATASET Places (user STRING, at TIMESTAMP, n INT)"


def open_storage(spark: SparkSession, folder: Path) -> Storage:
    return Storage(SupervisedSpark(lambda: spark), Catalog(folder), folder)


def made(spark: SparkSession, folder: Path, statement: str) -> tuple[Storage, DatasetEntry]:
    storage = open_storage(spark, folder)
    return storage, storage.definitions.apply(dataset_statement(statement))[0]


def store(
    storage: Storage, known: DatasetEntry, users: Sequence[str], accepted_s: float = 1.0
) -> int:
    """Store a batch with a record for each user; `n` is its position.  The number of the batch."""
    before = storage.files.progress(known.id)
    batch = before.batch + 1
    positions = list(range(before.position + 1, before.position + 1 + len(users)))
    rows = [
        {"user": user, "at": position, "n": position, "_accepted_s": accepted_s,
         "_position": position, "_batch": batch}
        for user, position in zip(users, positions, strict=True)
    ]  # fmt: skip
    with storage.folders.staging() as staged:
        staged.mkdir()
        table = pa.Table.from_pylist(rows, schema=stored(known.dataset))
        pq.write_table(table, staged / "batch.parquet")
        files = storage.folders.publish(known.id, staged)
    last = positions[-1] if positions else before.position
    storage.files.commit(known.id, before, IngestProgress(batch, last, "test", batch), files)
    return batch


def rows(frame: DataFrame) -> list[tuple[str, int, int]]:
    """User, position and batch of each record, by position."""
    found = frame.select("user", "_position", "_batch", "n", "_accepted_s", "at").collect()
    assert all(row["n"] == row["_position"] == row["at"].timestamp() * 1e6 for row in found)
    return sorted(
        ((row["user"], row["_position"], row["_batch"]) for row in found), key=lambda row: row[1]
    )
