"""Writes a trace as Parquet files, in bounded memory.

About `ROWS_PER_GROUP` rows of a table are written as a row group.  A file is closed and the next
one opened when it has `rows_per_file` rows: closed files can be read, shipped or deleted during the
run.  A file that is being written has a name that readers ignore, so a killed run leaves only
complete files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import pyarrow as pa
import pyarrow.parquet as pq

from godwit.errors import UsageError
from godwit.trace.background import Action, Background
from godwit.trace.rows import RowGroup, Rows, SpreadRows, as_written
from godwit.trace.schema import TABLES, TEXT

ROWS_PER_FILE = 2_000_000


class Worker(Protocol):
    """Runs the actions that write."""

    def run(self, action: Action) -> bool:
        """Run the action now or later, in order.  False if it will not be run."""
        ...

    def finish(self) -> None:
        """Wait until all actions are done."""
        ...


class TableFiles:
    """The files of one table, one after the other."""

    def __init__(self, folder: Path, schema: pa.Schema, *, prefix: str, rows_per_file: int) -> None:
        self._folder = folder
        self._schema = schema
        self._prefix = prefix
        self._rows_per_file = rows_per_file
        self._files = 0
        self._file: Any = None
        self._rows_in_file = 0
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, group: RowGroup) -> None:
        if not group.rows:
            return
        if self._file is None:
            self._open()
        self._file.write_table(group.table(self._schema))
        self._rows_in_file += group.rows
        if self._rows_in_file >= self._rows_per_file:
            self.close()

    def close(self) -> None:
        """Close the file and rename it so that readers see it."""
        if self._file is None:
            return
        self._file.close()
        self._path(hidden=True).rename(self._path(hidden=False))
        self._file = None
        self._rows_in_file = 0
        self._files += 1

    def finish(self) -> None:
        """Close the last file.  A table without rows gets an empty file."""
        if not self._files and self._file is None:
            self._open()
        self.close()

    def _open(self) -> None:
        self._file = pq.ParquetWriter(
            self._path(hidden=True),
            as_written(self._schema),
            store_schema=False,  # Readers see texts, not dictionaries.
            # Texts repeat, numbers do not.
            use_dictionary=[field.name for field in self._schema if field.type == TEXT],
            write_statistics=["time_s"],  # Readers select rows by it.
        )

    def _path(self, *, hidden: bool) -> Path:
        return self._folder / f"{'_' if hidden else ''}{self._prefix}{self._files:05d}.parquet"


class TraceWriter:
    """The tables of one run, in a folder; several writers with their own `prefix` may share it."""

    def __init__(
        self,
        folder: Path,
        *,
        prefix: str = "",
        rows_per_file: int = ROWS_PER_FILE,
        worker: Worker | None = None,
    ) -> None:
        try:
            self._files = {
                name: TableFiles(folder / name, schema, prefix=prefix, rows_per_file=rows_per_file)
                for name, schema in TABLES.items()
            }
        except OSError as error:
            raise UsageError(f"cannot write a trace to {folder}: {error.strerror}") from None
        self._worker = worker or Background()
        self.rows_lost = 0
        """Rows that the worker refused."""
        self.handled = Rows(TABLES["handled"], self._writing("handled"))
        self.delivered = SpreadRows(
            TABLES["delivered"], self._writing("delivered"), differ_in="client"
        )
        self.gauges = Rows(TABLES["gauges"], self._writing("gauges"))
        self.decisions = Rows(TABLES["decisions"], self._writing("decisions"))
        self._tables = (self.handled, self.delivered, self.gauges, self.decisions)

    @property
    def rows(self) -> int:
        """Rows so far, written or not."""
        return sum(table.count for table in self._tables)

    def rotate(self) -> None:
        """Make all rows visible to readers."""
        self._close(TableFiles.close)

    def close(self) -> None:
        self._close(TableFiles.finish)
        self._worker.finish()

    def _writing(self, table: str) -> Callable[[RowGroup], None]:
        write = self._files[table].write
        return lambda group: self._have_done(partial(write, group), group.rows)

    def _close(self, close: Callable[[TableFiles], None]) -> None:
        groups = [table.take() for table in self._tables]
        rows = sum(group.rows for group in groups)
        self._have_done(partial(_write_last, list(self._files.values()), groups, close), rows)

    def _have_done(self, action: Action, rows: int) -> None:
        if not self._worker.run(action):
            self.rows_lost += rows

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _write_last(
    files: Sequence[TableFiles], groups: Sequence[RowGroup], close: Callable[[TableFiles], None]
) -> None:
    for each, group in zip(files, groups, strict=True):
        each.write(group)
        close(each)
