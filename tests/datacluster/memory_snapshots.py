"""Datasets in memory, and those that tests of channels use: reports, users who move, shelters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from godwit.datacluster.model.dataset import Column, ColumnType, Dataset
from godwit.datacluster.model.schemas import ARROW
from godwit.errors import UsageError

Record = Mapping[str, object]

REPORTS = Dataset(
    "Reports",
    (
        Column("id", ColumnType.BIGINT),
        Column("type", ColumnType.STRING),
        Column("severity", ColumnType.DOUBLE),
        Column("lat", ColumnType.DOUBLE),
        Column("lon", ColumnType.DOUBLE),
        Column("at", ColumnType.TIMESTAMP),
    ),
)
USERS = Dataset(
    "Users",
    (
        Column("user_id", ColumnType.STRING),
        Column("lat", ColumnType.DOUBLE),
        Column("lon", ColumnType.DOUBLE),
    ),
    key="user_id",
)
SHELTERS = Dataset(
    "Shelters",
    (
        Column("name", ColumnType.STRING),
        Column("type", ColumnType.STRING),
        Column("lat", ColumnType.DOUBLE),
        Column("lon", ColumnType.DOUBLE),
    ),
    is_static=True,
)


class MemorySnapshots:
    """Batches of records, and what `Snapshots` promises about them."""

    def __init__(self, spark: SparkSession, *datasets: Dataset) -> None:
        self._spark = spark
        self._datasets = {dataset.name.lower(): dataset for dataset in datasets}
        self._batches: dict[str, list[list[Record]]] = {name: [[]] for name in self._datasets}

    def load(self, name: str, records: Iterable[Record]) -> None:
        self._batches[name.lower()][0] = list(records)

    def append(self, name: str, records: Iterable[Record]) -> int:
        batches = self._batches[name.lower()]
        batches.append(list(records))
        return len(batches) - 1

    def records(self, name: str, *, through: int) -> list[Record]:
        """In plain Python: all up to a batch, or the latest of each key."""
        records = [r for batch in self._batches[name.lower()][: through + 1] for r in batch]
        key = self.dataset(name).key
        return records if key is None else list({r[key]: r for r in records}.values())

    def new_records(self, name: str, *, after: int, through: int) -> list[Record]:
        return [r for batch in self._batches[name.lower()][after + 1 : through + 1] for r in batch]

    # -- Snapshots -----------------------------------------------------------------------------

    def dataset(self, name: str) -> Dataset:
        if name.lower() not in self._datasets:
            raise UsageError(f"there is no dataset {name}")
        return self._datasets[name.lower()]

    def last_batch(self, name: str) -> int:
        return len(self._batches[name.lower()]) - 1

    def reading(self) -> AbstractContextManager[None]:
        return nullcontext()

    def frame(self, name: str, *, through: int) -> DataFrame:
        return self._frame(name, self.records(name, through=through))

    def new(self, name: str, *, after: int, through: int) -> DataFrame:
        return self._frame(name, self.new_records(name, after=after, through=through))

    def _frame(self, name: str, records: list[Record]) -> DataFrame:
        columns = self.dataset(name).columns
        schema = pa.schema([(column.name, ARROW[column.type]) for column in columns])
        internal = [
            ("_batch", pa.int64()),
            ("_position", pa.int64()),
            ("_accepted_s", pa.float64()),
        ]
        table = pa.Table.from_pylist([dict(record) for record in records], schema=schema)
        for field in internal:
            table = table.append_column(*field_of(field, table.num_rows))
        frame: DataFrame = self._spark.createDataFrame(table)
        return frame


def field_of(field: tuple[str, pa.DataType], rows: int) -> tuple[pa.Field, pa.Array]:
    name, type = field
    return pa.field(name, type), pa.array([0] * rows, type)
