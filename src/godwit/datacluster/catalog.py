"""The catalog: definitions, batches, files and executions in one SQLite file.

Parquet files hold the records; a file counts when a row of the catalog names it.  So a step that
concerns several files is one transaction.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FILE_NAME = "catalog.db"


class Catalog:
    """One connection, used by one thread at a time.  May be called from several threads."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(
            folder / FILE_NAME, check_same_thread=False, isolation_level=None
        )
        self._connection.row_factory = sqlite3.Row
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")  # Answers are sent after the commit.
        self._connection.execute("PRAGMA foreign_keys = ON")
        self._lock = threading.RLock()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All changes inside are committed, or none; transactions do not nest."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # A full disk may have ended it already.
                    self._connection.execute("ROLLBACK")
                raise

    def define(self, *statements: str) -> None:
        """Create missing tables and indexes: `CREATE TABLE IF NOT EXISTS ...`."""
        with self.transaction() as connection:
            for statement in statements:
                connection.execute(statement)

    def add_column(self, table: str, column: str, declaration: str) -> None:
        """Add a column that the table of an earlier release does not have."""
        with self.transaction() as connection:
            columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
            if column not in [row["name"] for row in columns]:
                connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} {declaration}")

    def close(self) -> None:
        with self._lock:
            self._connection.close()
