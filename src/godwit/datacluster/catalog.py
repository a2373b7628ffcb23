"""The catalog: definitions, batches, files and executions in one SQLite file.

Parquet files hold the records; a file counts when a row of the catalog names it.  So a step that
concerns several files is one transaction.

Q1  With an epoch, a transaction fails if the lease has another one (lease.py).
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from godwit.errors import GodwitError

FILE_NAME = "catalog.db"
#: Another process, which holds the lease or wants it, writes for a moment now and then.
BUSY_S = 30.0


class FencedError(GodwitError):
    """Another process has taken over: this one must not change anything any more."""


class Catalog:
    """One connection, used by one thread at a time.  May be called from several threads."""

    def __init__(self, folder: Path, *, epoch: int | None = None) -> None:
        self._epoch = epoch
        folder.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(
            folder / FILE_NAME, check_same_thread=False, isolation_level=None, timeout=BUSY_S
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
                self._check_epoch()
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # A full disk may have ended it already.
                    self._connection.execute("ROLLBACK")
                raise

    def _check_epoch(self) -> None:
        """Q1."""
        if self._epoch is None:
            return
        row = self._connection.execute("SELECT epoch FROM lease").fetchone()
        if row["epoch"] != self._epoch:
            raise FencedError("another process has taken over this data cluster")

    @property
    def changes(self) -> int:
        """Rises with every row that this process changes."""
        return self._connection.total_changes

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
