"""The files of each dataset, and how far it was ingested: rows of the catalog.

F1  A file counts from the moment a row names it until the row says that it was dropped; both happen
    in one transaction with the changes that belong to it.
F2  The files of a dataset that count hold each record once, in the order of their batches.
F3  The number of the last batch changes in one transaction with the files of that batch.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

import msgspec

from godwit.datacluster.catalog import Catalog

TABLES = (
    """CREATE TABLE IF NOT EXISTS ingested (
        dataset INTEGER PRIMARY KEY,
        batch INTEGER NOT NULL,
        position INTEGER NOT NULL,
        query TEXT NOT NULL,
        query_batch INTEGER NOT NULL
    )""",
    """CREATE TABLE IF NOT EXISTS files (
        id INTEGER PRIMARY KEY,
        dataset INTEGER NOT NULL,
        path TEXT NOT NULL UNIQUE,
        first_batch INTEGER NOT NULL,
        last_batch INTEGER NOT NULL,
        last_position INTEGER NOT NULL,
        rows INTEGER NOT NULL,
        size_bytes INTEGER NOT NULL,
        newest_s REAL NOT NULL,
        is_base INTEGER NOT NULL,
        dropped_s REAL
    )""",
    "CREATE INDEX IF NOT EXISTS files_of_dataset ON files (dataset, last_batch)",
    # For readers from outside: docs/datacluster.md, "Read a dataset without Godwit".
    """CREATE VIEW IF NOT EXISTS dataset_files AS
        SELECT datasets.name AS dataset, 'data/' || path AS path, rows, size_bytes, is_base
        FROM files JOIN datasets ON datasets.id = files.dataset
        WHERE dropped_s IS NULL ORDER BY is_base DESC, first_batch, last_position""",
)


class IngestProgress(msgspec.Struct, frozen=True):
    """How far a dataset was ingested."""

    batch: int = 0
    position: int = 0
    query: str = ""
    """The id of the streaming query that did it, from its checkpoint."""

    query_batch: int = -1
    """The query's own number of the batch."""


class StoredFile(msgspec.Struct, frozen=True):
    path: str
    """Relative to the data folder."""

    first_batch: int
    last_batch: int
    last_position: int
    rows: int
    size_bytes: int
    newest_s: float
    """When the newest of its records was accepted."""

    is_base: bool = False
    """It has the latest record of each key; later records are in the other files."""


_COLUMNS = ", ".join(StoredFile.__struct_fields__)


class Files:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        catalog.define(*TABLES)

    def progress(self, dataset: int) -> IngestProgress:
        with self._catalog.transaction() as connection:
            return _progress(connection, dataset)

    def commit(
        self,
        dataset: int,
        before: IngestProgress,
        after: IngestProgress,
        files: Iterable[StoredFile],
    ) -> None:
        """Add a batch to the dataset, which must still be at `before`."""
        with self._catalog.transaction() as connection:
            found = _progress(connection, dataset)
            assert found == before, f"two at once: {found} is not {before}"
            connection.execute(
                "INSERT OR REPLACE INTO ingested VALUES (?, ?, ?, ?, ?)",
                (dataset, *msgspec.structs.astuple(after)),
            )
            _add(connection, dataset, files)

    def of(self, dataset: int) -> list[StoredFile]:
        """The files that count, in the order of their batches, the base first."""
        with self._catalog.transaction() as connection:
            return _of(connection, dataset)

    def replace(
        self, dataset: int, old: Sequence[StoredFile], new: Iterable[StoredFile], *, now_s: float
    ) -> bool:
        """Replace files in one transaction; False if some of them do not count any more."""
        with self._catalog.transaction() as connection:
            counting = {file.path for file in _of(connection, dataset)}
            if not all(file.path in counting for file in old):
                return False
            connection.executemany(
                "UPDATE files SET dropped_s = ? WHERE path = ?",
                [(now_s, file.path) for file in old],
            )
            _add(connection, dataset, new)
            return True

    def drop_all(self, dataset: int, *, now_s: float) -> None:
        """Drop all files of a dataset, and its progress."""
        with self._catalog.transaction() as connection:
            connection.execute(
                "UPDATE files SET dropped_s = ? WHERE dataset = ? AND dropped_s IS NULL",
                (now_s, dataset),
            )
            connection.execute("DELETE FROM ingested WHERE dataset = ?", (dataset,))

    def dropped(self, *, before_s: float) -> list[str]:
        with self._catalog.transaction() as connection:
            rows = connection.execute(
                "SELECT path FROM files WHERE dropped_s < ?", (before_s,)
            ).fetchall()
        return [row["path"] for row in rows]

    def forget(self, paths: Iterable[str]) -> None:
        """Remove the rows of files that were deleted."""
        with self._catalog.transaction() as connection:
            connection.executemany("DELETE FROM files WHERE path = ?", [(path,) for path in paths])

    def all_paths(self) -> set[str]:
        """The files that count, and those that are dropped but not yet deleted."""
        with self._catalog.transaction() as connection:
            return {row["path"] for row in connection.execute("SELECT path FROM files")}


def _progress(connection: sqlite3.Connection, dataset: int) -> IngestProgress:
    row = connection.execute(
        "SELECT batch, position, query, query_batch FROM ingested WHERE dataset = ?", (dataset,)
    ).fetchone()
    return IngestProgress(*row) if row is not None else IngestProgress()


def _of(connection: sqlite3.Connection, dataset: int) -> list[StoredFile]:
    rows = connection.execute(
        f"""SELECT {_COLUMNS} FROM files WHERE dataset = ? AND dropped_s IS NULL
        ORDER BY is_base DESC, first_batch, last_position""",  # noqa: S608  Fixed names.
        (dataset,),
    )
    return [msgspec.convert(dict(row), StoredFile, strict=False) for row in rows]


def _add(connection: sqlite3.Connection, dataset: int, files: Iterable[StoredFile]) -> None:
    marks = ", ".join("?" for _ in StoredFile.__struct_fields__)
    connection.executemany(
        f"INSERT INTO files (dataset, {_COLUMNS}) VALUES (?, {marks})",  # noqa: S608
        [(dataset, *msgspec.structs.astuple(file)) for file in files],
    )
