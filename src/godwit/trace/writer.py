"""Rows into Parquet, in bounded memory.

A table's rows are collected in a list for each column, and every `ROWS_PER_GROUP` are written as a
row group.  A file is closed and the next one opened when it has `rows_per_file` rows: what is
closed can be read, shipped or deleted while the run goes on.  A file that is being written has a
name that readers overlook, so a run that is killed leaves whole files only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from godwit.errors import UsageError
from godwit.trace.schema import TABLES

ROWS_PER_GROUP = 32_768
ROWS_PER_FILE = 2_000_000


class TableWriter:
    """One table.  `columns` are lists to append to, all of them or none; then `added(rows)`."""

    def __init__(self, folder: Path, schema: pa.Schema, *, prefix: str, rows_per_file: int) -> None:
        self.columns: tuple[list[Any], ...] = tuple([] for _ in schema.names)
        self.rows = 0
        self._folder = folder
        self._schema = schema
        self._prefix = prefix
        self._rows_per_file = rows_per_file
        self._collected = 0
        self._in_file = 0
        self._files = 0
        self._file: pq.ParquetWriter | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, row: Sequence[Any]) -> None:
        for column, value in zip(self.columns, row, strict=True):
            column.append(value)
        self.added(1)

    def extend(self, rows: Iterable[Sequence[Any]]) -> None:
        for row in rows:
            self.add(row)

    def added(self, rows: int) -> None:
        """So many rows were appended to the columns."""
        self.rows += rows
        self._collected += rows
        if self._collected >= ROWS_PER_GROUP:
            self._write()

    def _write(self) -> None:
        if not self._collected:
            return
        arrays = [
            pa.array(column, type=field.type)
            for column, field in zip(self.columns, self._schema, strict=True)
        ]
        if self._file is None:
            self._file = pq.ParquetWriter(self._path(hidden=True), self._schema)
        self._file.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        self._in_file += self._collected
        self._collected = 0
        for column in self.columns:
            column.clear()
        if self._in_file >= self._rows_per_file:
            self._close_file()

    def _path(self, *, hidden: bool) -> Path:
        return self._folder / f"{'_' if hidden else ''}{self._prefix}{self._files:05d}.parquet"

    def _close_file(self) -> None:
        if self._file is None:
            return
        self._file.close()
        self._path(hidden=True).rename(self._path(hidden=False))
        self._file = None
        self._files += 1
        self._in_file = 0

    def close(self) -> None:
        if not self.rows:  # A table without rows is a table all the same.
            self._file = pq.ParquetWriter(self._path(hidden=True), self._schema)
        self._write()
        self._close_file()


class TraceWriter:
    """The tables of one run, in a folder; several writers with their own `prefix` may share it."""

    def __init__(
        self, folder: Path, *, prefix: str = "", rows_per_file: int = ROWS_PER_FILE
    ) -> None:
        try:
            self.tables = {
                name: TableWriter(folder / name, schema, prefix=prefix, rows_per_file=rows_per_file)
                for name, schema in TABLES.items()
            }
        except OSError as error:
            raise UsageError(f"cannot write a trace to {folder}: {error.strerror}") from None

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables.values())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        for table in self.tables.values():
            table.close()
