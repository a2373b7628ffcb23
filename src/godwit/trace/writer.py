"""Rows into Parquet, in bounded memory.

A row is collected as bytes, and every `ROWS_PER_GROUP` are written as a row group.  A file is
closed and the next one opened when it has `rows_per_file` rows: what is closed can be read,
shipped or deleted while the run goes on.  A file that is being written has a name that readers
overlook, so a run that is killed leaves whole files only.

Why bytes: objects that wait for their row group are seen by Python's cyclic garbage collector,
which then walks the whole heap of a simulation again and again.  That cost more than all the rest.
Bytes are also columns for NumPy and Arrow without another look at each cell.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from struct import Struct
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from godwit.errors import UsageError
from godwit.trace.schema import COUNT, NUMBER, SMALL_COUNT, TABLES, TEXT, YES_OR_NO

ROWS_PER_GROUP = 65_536
ROWS_PER_FILE = 2_000_000

#: Stands for null in a column of counts, which are never negative.
ABSENT = -1
#: How a cell is packed; a text is packed as its number among the names of the row group.
FORMATS = {TEXT: "i", NUMBER: "d", COUNT: "q", SMALL_COUNT: "i", YES_OR_NO: "?"}
DTYPES = {TEXT: "<i4", NUMBER: "<f8", COUNT: "<i8", SMALL_COUNT: "<i4", YES_OR_NO: "?"}


class Names(dict[str | None, int]):
    """Texts by number: the first is 0.  Null is a text as well."""

    def __missing__(self, name: str | None) -> int:
        number = self[name] = len(self)
        return number


class TableWriter:
    """One table: `add(row)`, or the same in two steps, `put(pack(*cells))`, with names[text]."""

    def __init__(self, folder: Path, schema: pa.Schema, *, prefix: str, rows_per_file: int) -> None:
        self.names = Names()
        self.pack = Struct("<" + "".join(FORMATS[field.type] for field in schema)).pack
        self._folder = folder
        self._schema = schema
        self._prefix = prefix
        self._rows_per_file = rows_per_file
        self._dtype = np.dtype([(field.name, DTYPES[field.type]) for field in schema])
        self._as_written = pa.schema([_as_written(field) for field in schema])
        self._packed = bytearray()
        self._packed_max = ROWS_PER_GROUP * self._dtype.itemsize
        self._written = 0
        self._in_file = 0
        self._files = 0
        self._file: Any = None
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def rows(self) -> int:
        return self._written + self._collected

    @property
    def _collected(self) -> int:
        return len(self._packed) // self._dtype.itemsize

    def add(self, row: Sequence[Any]) -> None:
        """A cell for each column, in their order."""
        names = self.names
        cells = zip(row, self._schema, strict=True)
        self.put(self.pack(*(names[cell] if of.type == TEXT else cell for cell, of in cells)))

    def put(self, packed: bytes) -> None:
        self._packed += packed
        if len(self._packed) >= self._packed_max:
            self.flush()

    def flush(self) -> None:
        """Write what was collected as a row group."""
        rows = self._collected
        if not rows:
            return
        table = pa.Table.from_arrays(self._columns(self._take()), schema=self._as_written)
        self.names.clear()
        if self._file is None:
            self._open_file()
        self._file.write_table(table)
        self._written += rows
        self._in_file += rows
        if self._in_file >= self._rows_per_file:
            self._close_file()

    def _take(self) -> np.ndarray[Any, Any]:
        packed, self._packed = self._packed, bytearray()
        return np.frombuffer(packed, self._dtype)

    def _columns(self, records: np.ndarray[Any, Any]) -> list[pa.Array]:
        null = self.names.get(None, ABSENT)
        texts = pa.array([name or "" for name in self.names], TEXT)
        columns = []
        for field in self._schema:
            cells = np.ascontiguousarray(records[field.name])
            if field.type == TEXT:
                numbers = pa.array(cells, mask=cells == null)
                columns.append(pa.DictionaryArray.from_arrays(numbers, texts, safe=False))
            elif field.type == COUNT:
                columns.append(pa.array(cells, mask=cells == ABSENT))
            else:
                columns.append(pa.array(cells))
        return columns

    def _path(self, *, hidden: bool) -> Path:
        return self._folder / f"{'_' if hidden else ''}{self._prefix}{self._files:05d}.parquet"

    def _open_file(self) -> None:
        self._file = pq.ParquetWriter(
            self._path(hidden=True),
            self._as_written,
            store_schema=False,  # A reader sees texts, not how they were handed over.
            # Texts repeat, numbers do not: to look for repetitions in them is work for nothing.
            use_dictionary=[field.name for field in self._schema if field.type == TEXT],
            write_statistics=["time_s"],  # What a reader selects rows by.
        )

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
    """A table in which many rows at a time differ in one column of texts only."""

    def __init__(
        self, folder: Path, schema: pa.Schema, *, prefix: str, rows_per_file: int, differ_in: str
    ) -> None:
        super().__init__(folder, schema, prefix=prefix, rows_per_file=rows_per_file)
        self._differ_in = differ_in
        self._texts = array("i")

    @property
    def _collected(self) -> int:
        return len(self._texts)

    def put_each(self, packed: bytes, texts: Sequence[str]) -> None:
        """A row for each text.  In their column, what was packed has how many there are."""
        self._packed += packed
        self._texts.extend(map(self.names.__getitem__, texts))
        if len(self._texts) >= ROWS_PER_GROUP:
            self.flush()

    def _take(self) -> np.ndarray[Any, Any]:
        once = super()._take()
        records = np.repeat(once, once[self._differ_in])
        records[self._differ_in] = self._texts
        self._texts = array("i")
        return records


def _as_written(field: pa.Field) -> pa.Field:
    """A column of texts is handed over as numbers, and what they stand for."""
    return field.with_type(pa.dictionary(pa.int32(), TEXT)) if field.type == TEXT else field


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
