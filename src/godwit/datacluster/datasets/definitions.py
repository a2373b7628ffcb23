"""The datasets and feeds that exist: definitions in the catalog.

A dataset that is fed comes with a second one, `<name>_quarantine`, for records that do not fit.
Each dataset has a number that is never reused, so that the files of a dropped dataset are not
taken for those of a later one with the same name.
"""

from __future__ import annotations

import sqlite3

import msgspec

from godwit.datacluster.catalog import Catalog
from godwit.datacluster.ddl.statements import (
    CreateDataset,
    CreateFeed,
    DatasetStatement,
    DropDataset,
    DropFeed,
)
from godwit.datacluster.model.dataset import QUARANTINE_SUFFIX, Column, ColumnType, Dataset
from godwit.datacluster.model.feed import Feed
from godwit.errors import UsageError

TABLES = (
    """CREATE TABLE IF NOT EXISTS datasets (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE COLLATE NOCASE,
        definition BLOB NOT NULL,
        quarantine_of INTEGER REFERENCES datasets (id) ON DELETE CASCADE
    )""",
    """CREATE TABLE IF NOT EXISTS feeds (
        name TEXT NOT NULL PRIMARY KEY COLLATE NOCASE,
        filter TEXT NOT NULL,
        dataset INTEGER NOT NULL REFERENCES datasets (id)
    )""",
)
QUARANTINE_COLUMNS = (
    Column("reason", ColumnType.STRING),
    Column("record", ColumnType.STRING),
    Column("source", ColumnType.STRING),
    Column("sequence", ColumnType.BIGINT),
)


class DatasetEntry(msgspec.Struct, frozen=True):
    """A dataset that exists, with its number."""

    id: int
    dataset: Dataset
    quarantine_of: int | None = None


class Definitions:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        catalog.define(*TABLES)

    def apply(self, statement: DatasetStatement) -> list[DatasetEntry]:
        """Carry out a statement; the datasets that it created or dropped."""
        with self._catalog.transaction() as connection:
            match statement:
                case CreateDataset(dataset):
                    return _create_dataset(connection, dataset)
                case CreateFeed(feed):
                    _create_feed(connection, feed)
                    return []
                case DropDataset(name):
                    return _drop_dataset(connection, name)
                case DropFeed(name):
                    _drop_feed(connection, name)
                    return []

    def entry(self, name: str) -> DatasetEntry:
        with self._catalog.transaction() as connection:
            return _entry(connection, name)

    def all(self) -> list[DatasetEntry]:
        """In the order of their creation."""
        with self._catalog.transaction() as connection:
            rows = connection.execute("SELECT * FROM datasets ORDER BY id")
            return [_as_entry(row) for row in rows]

    def feeds(self) -> list[Feed]:
        with self._catalog.transaction() as connection:
            rows = connection.execute(
                """SELECT feeds.name, filter, datasets.name AS dataset
                FROM feeds JOIN datasets ON datasets.id = dataset ORDER BY feeds.name"""
            )
            return [Feed(row["name"], row["filter"], row["dataset"]) for row in rows]


def _as_entry(row: sqlite3.Row) -> DatasetEntry:
    dataset = msgspec.json.decode(row["definition"], type=Dataset)
    return DatasetEntry(row["id"], dataset, row["quarantine_of"])


def _find(connection: sqlite3.Connection, name: str) -> sqlite3.Row | None:
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM datasets WHERE name = ?", (name,)
    ).fetchone()
    return row


def _entry(connection: sqlite3.Connection, name: str) -> DatasetEntry:
    row = _find(connection, name)
    if row is None:
        raise UsageError(f"there is no dataset {name}")
    return _as_entry(row)


def _create_dataset(connection: sqlite3.Connection, dataset: Dataset) -> list[DatasetEntry]:
    if (existing := _find(connection, dataset.name)) is not None:
        raise UsageError(f"dataset {existing['name']} exists already")
    made = [_insert(connection, dataset, None)]
    if not dataset.is_static:
        quarantine = Dataset(dataset.name + QUARANTINE_SUFFIX, QUARANTINE_COLUMNS)
        made.append(_insert(connection, quarantine, made[0].id))
    return made


def _insert(
    connection: sqlite3.Connection, dataset: Dataset, quarantine_of: int | None
) -> DatasetEntry:
    cursor = connection.execute(
        "INSERT INTO datasets (name, definition, quarantine_of) VALUES (?, ?, ?)",
        (dataset.name, msgspec.json.encode(dataset), quarantine_of),
    )
    assert cursor.lastrowid is not None
    return DatasetEntry(cursor.lastrowid, dataset, quarantine_of)


def _create_feed(connection: sqlite3.Connection, feed: Feed) -> None:
    existing = connection.execute("SELECT name FROM feeds WHERE name = ?", (feed.name,)).fetchone()
    if existing is not None:
        raise UsageError(f"feed {existing['name']} exists already")
    into = _entry(connection, feed.dataset)
    if into.dataset.is_static:
        raise UsageError(f"dataset {into.dataset.name} is static: it is loaded, not fed")
    if into.quarantine_of is not None:
        raise UsageError(f"dataset {into.dataset.name} is a quarantine: it cannot be fed")
    connection.execute("INSERT INTO feeds VALUES (?, ?, ?)", (feed.name, feed.filter, into.id))


def _drop_dataset(connection: sqlite3.Connection, name: str) -> list[DatasetEntry]:
    entry = _entry(connection, name)
    if entry.quarantine_of is not None:
        raise UsageError(
            f"dataset {entry.dataset.name} is a quarantine: it is dropped with its dataset"
        )
    feed = connection.execute("SELECT name FROM feeds WHERE dataset = ?", (entry.id,)).fetchone()
    if feed is not None:
        raise UsageError(
            f"dataset {entry.dataset.name} is fed by {feed['name']}: drop that feed first"
        )
    rows = connection.execute("SELECT * FROM datasets WHERE quarantine_of = ?", (entry.id,))
    dropped = [entry, *(_as_entry(row) for row in rows)]
    connection.execute("DELETE FROM datasets WHERE id = ?", (entry.id,))
    return dropped


def _drop_feed(connection: sqlite3.Connection, name: str) -> None:
    if not connection.execute("DELETE FROM feeds WHERE name = ?", (name,)).rowcount:
        raise UsageError(f"there is no feed {name}")
