"""Rows into Parquet, in bounded memory.

A table's rows are collected cell by cell in one flat list, and every `ROWS_PER_GROUP` are written
as a row group.  A file is closed and the next one opened when it has `rows_per_file` rows: what is
closed can be read, shipped or deleted while the run goes on.  A file that is being written has a
name that readers overlook, so a run that is killed leaves whole files only.

Cells are numbers and strings, never lists or objects.  Those would be seen by Python's cyclic
garbage collector, and thousands of them that wait for their row group make it walk the whole heap
of a simulation again and again: that cost more than all the rest of a trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from godwit.errors import UsageError
from godwit.trace.schema import COUNT, TABLES, TEXT

ROWS_PER_GROUP = 65_536
ROWS_PER_FILE = 2_000_000


class TableWriter:
    """One table."""

    def __init__(self, folder: Path, schema: pa.Schema, *, prefix: str, rows_per_file: int) -> None:
        self._folder = folder
        self._schema = schema
        self._prefix = prefix
        self._rows_per_file = rows_per_file
        self._width = len(schema)
        self._cells: list[Any] = []
        self._cells_max = ROWS_PER_GROUP * self._width
        self._written = 0
        self._in_file = 0
        self._files = 0
        self._file: pq.ParquetWriter | None = None
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def rows(self) -> int:
        return self._written + self._collected

    @property
    def _collected(self) -> int:
        return len(self._cells) // self._width

    def add(self, row: Sequence[Any]) -> None:
        """A row has a cell for each column, in their order."""
        cells = self._cells
        cells.extend(row)
        if len(cells) >= self._cells_max:
            self.flush()

    def flush(self) -> None:
        """Write what was collected as a row group."""
        if not self._collected:
            return
        arrays = self._arrays()
        self._cells.clear()
        rows = len(arrays[0])
        if self._file is None:
            self._open_file()
        self._file.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        self._written += rows
        self._in_file += rows
        if self._in_file >= self._rows_per_file:
            self._close_file()

    def _arrays(self) -> list[pa.Array]:
        return columns(self._cells, self._schema)

    def _path(self, *, hidden: bool) -> Path:
        return self._folder / f"{'_' if hidden else ''}{self._prefix}{self._files:05d}.parquet"

    def _open_file(self) -> None:
        # Names repeat, numbers do not: a dictionary of them is work for nothing.
        names = [field.name for field in self._schema if field.type == TEXT]
        self._file = pq.ParquetWriter(self._path(hidden=True), self._schema, use_dictionary=names)

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
            self._open_file()
        self.flush()
        self._close_file()


class SpreadWriter(TableWriter):
    """A table in which many rows at a time differ in one column only."""

    def __init__(
        self, folder: Path, schema: pa.Schema, *, prefix: str, rows_per_file: int, differ_in: str
    ) -> None:
        super().__init__(folder, schema, prefix=prefix, rows_per_file=rows_per_file)
        self._place = schema.get_field_index(differ_in)
        # In that column there is, until it is written, how many rows there are.
        self._counted = schema.set(self._place, pa.field(differ_in, COUNT))
        self._values: list[Any] = []

    @property
    def _collected(self) -> int:
        return len(self._values)

    def add_each(self, row: Sequence[Any], values: Sequence[Any]) -> None:
        """As many rows as there are values.  In their column, `row` has how many there are."""
        self._cells.extend(row)
        collected = self._values
        collected.extend(values)
        if len(collected) >= ROWS_PER_GROUP:
            self.flush()

    def _arrays(self) -> list[pa.Array]:
        once = columns(self._cells, self._counted)
        which = np.repeat(np.arange(len(once[0])), once[self._place].to_numpy())
        arrays = [column.take(pa.array(which)) for column in once]
        arrays[self._place] = pa.array(self._values, self._schema.field(self._place).type)
        self._values.clear()
        return arrays


def columns(cells: Sequence[Any], schema: pa.Schema) -> list[pa.Array]:
    """The columns of rows whose cells follow each other."""
    width = len(schema)
    assert len(cells) % width == 0, f"a row has a cell for each of {schema.names}"
    return [pa.array(cells[n::width], type=field.type) for n, field in enumerate(schema)]


class TraceWriter:
    """The tables of one run, in a folder; several writers with their own `prefix` may share it."""

    def __init__(
        self, folder: Path, *, prefix: str = "", rows_per_file: int = ROWS_PER_FILE
    ) -> None:
        def table(name: str) -> TableWriter:
            return TableWriter(
                folder / name, TABLES[name], prefix=prefix, rows_per_file=rows_per_file
            )

        try:
            self.handled = table("handled")
            self.delivered = SpreadWriter(
                folder / "delivered",
                TABLES["delivered"],
                prefix=prefix,
                rows_per_file=rows_per_file,
                differ_in="client",
            )
            self.gauges = table("gauges")
            self.decisions = table("decisions")
        except OSError as error:
            raise UsageError(f"cannot write a trace to {folder}: {error.strerror}") from None
        self.tables = (self.handled, self.delivered, self.gauges, self.decisions)

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables)

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
        for table in self.tables:
            table.close()
