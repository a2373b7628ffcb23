"""The catalog's tables of channels, and the two counters that order their changes.

channels         definitions
dropped_channels by name, the last one that was dropped: brokers and subscribers may be away then
subscriptions    (channel, arguments), in force from one version until another
holds            which broker holds which subscription, and the first row not acknowledged
executions       what each execution reads, and its outcome
plans            Spark's plans of executions, each stored once
"""

from __future__ import annotations

import sqlite3

from godwit.datacluster.catalog import Catalog

TABLES = (
    """CREATE TABLE IF NOT EXISTS channels (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE COLLATE NOCASE,
        definition BLOB NOT NULL,
        created_s REAL NOT NULL
    )""",
    """CREATE TABLE IF NOT EXISTS dropped_channels (
        name TEXT NOT NULL PRIMARY KEY COLLATE NOCASE,
        sequence INTEGER NOT NULL,
        last_subscription INTEGER NOT NULL,
        last_execution INTEGER NOT NULL
    ) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS subscriptions (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        channel INTEGER NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
        arguments BLOB NOT NULL,
        added INTEGER NOT NULL,
        removed INTEGER
    )""",
    """CREATE UNIQUE INDEX IF NOT EXISTS subscriptions_in_force
        ON subscriptions (channel, arguments) WHERE removed IS NULL""",
    "CREATE INDEX IF NOT EXISTS subscriptions_added ON subscriptions (channel, added)",
    """CREATE INDEX IF NOT EXISTS subscriptions_removed
        ON subscriptions (channel, removed) WHERE removed IS NOT NULL""",
    """CREATE TABLE IF NOT EXISTS holds (
        broker TEXT NOT NULL,
        subscription INTEGER NOT NULL REFERENCES subscriptions (id) ON DELETE CASCADE,
        after_execution INTEGER NOT NULL,
        acknowledged_execution INTEGER NOT NULL,
        acknowledged_ordinal INTEGER NOT NULL,
        released_s REAL,
        PRIMARY KEY (broker, subscription)
    ) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS holds_of ON holds (subscription)",
    "CREATE INDEX IF NOT EXISTS holds_released ON holds (released_s) WHERE released_s IS NOT NULL",
    "CREATE TABLE IF NOT EXISTS plans (id TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE IF NOT EXISTS executions (
        channel INTEGER NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        inputs BLOB NOT NULL,
        version INTEGER NOT NULL,
        moment_s REAL NOT NULL,
        state TEXT NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0,
        deaths INTEGER NOT NULL DEFAULT 0,
        is_stopped INTEGER NOT NULL DEFAULT 0,
        error TEXT,
        sequence INTEGER UNIQUE,
        rows INTEGER NOT NULL DEFAULT 0,
        bytes INTEGER NOT NULL DEFAULT 0,
        is_kept INTEGER NOT NULL DEFAULT 0,
        done_s REAL,
        timings BLOB,
        plan TEXT,
        PRIMARY KEY (channel, number)
    ) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS channel_counters (
        name TEXT PRIMARY KEY, value INTEGER NOT NULL
    ) WITHOUT ROWID""",
)
VERSION = "version"
"""Version of the subscriptions of all channels; rises with every change."""
SEQUENCE = "sequence"
"""Number of an execution with results, or of a drop, in the order of commits."""


def define(catalog: Catalog) -> None:
    catalog.define(*TABLES)
    for column in ("deaths", "is_stopped"):
        catalog.add_column("executions", column, "INTEGER NOT NULL DEFAULT 0")
    with catalog.transaction() as connection:
        connection.executemany(
            "INSERT OR IGNORE INTO channel_counters VALUES (?, 0)", [(VERSION,), (SEQUENCE,)]
        )


def current(connection: sqlite3.Connection, counter: str) -> int:
    row = connection.execute("SELECT value FROM channel_counters WHERE name = ?", (counter,))
    return int(row.fetchone()[0])


def next_of(connection: sqlite3.Connection, counter: str) -> int:
    row = connection.execute(
        "UPDATE channel_counters SET value = value + 1 WHERE name = ? RETURNING value", (counter,)
    )
    return int(row.fetchone()[0])
