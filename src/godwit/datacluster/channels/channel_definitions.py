"""Definitions of channels in the catalog, each with an id that is never reused.

N1  A name can be used again after a drop.  Executions of the new channel are numbered above those
    of the old one, so that a position tells which of the two it is of.
"""

from __future__ import annotations

import sqlite3

import msgspec

from godwit.content.channel_messages import Position, was_dropped
from godwit.datacluster.catalog import Catalog
from godwit.datacluster.channels.channel_tables import SEQUENCE, next_of
from godwit.datacluster.channels.executions import Inputs, begin
from godwit.datacluster.model.channel import Channel
from godwit.errors import UsageError


class KnownChannel(msgspec.Struct, frozen=True):
    """A channel in the catalog."""

    id: int
    channel: Channel
    created_s: float
    first: Position = (0, 0)
    """Earlier positions are of a channel of this name that was dropped (N1)."""


class ChannelDefinitions:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def add(self, channel: Channel, inputs: Inputs, *, now_s: float) -> None:
        """Batches up to `inputs` are not new to the channel."""
        with self._catalog.transaction() as connection:
            _require_free(connection, channel.name)
            cursor = connection.execute(
                "INSERT INTO channels (name, definition, created_s) VALUES (?, ?, ?)",
                (channel.name, msgspec.json.encode(channel), now_s),
            )
            assert cursor.lastrowid is not None
            dropped = _dropped(connection, channel.name)
            # Positions of the old channel go up to the execution after its last one (N1).
            number = 0 if dropped is None else dropped["last_execution"] + 1
            begin(connection, cursor.lastrowid, inputs, number=number, now_s=now_s)

    def require_free(self, name: str) -> None:
        with self._catalog.transaction() as connection:
            _require_free(connection, name)

    def remove(self, channel_id: int) -> None:
        """Remove a channel with its subscriptions and executions, and remember that."""
        with self._catalog.transaction() as connection:
            connection.execute(
                """INSERT OR REPLACE INTO dropped_channels
                SELECT name, ?,
                    coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'subscriptions'), 0),
                    (SELECT max(number) FROM executions WHERE channel = channels.id)
                FROM channels WHERE id = ?""",
                (next_of(connection, SEQUENCE), channel_id),
            )
            connection.execute("DELETE FROM channels WHERE id = ?", (channel_id,))

    def known(self, name: str) -> KnownChannel:
        with self._catalog.transaction() as connection:
            row = connection.execute(f"{_KNOWN} WHERE name = ?", (name,)).fetchone()
            dropped = None if row is not None else _dropped(connection, name)
        if dropped is not None:
            raise UsageError(was_dropped(dropped["name"]))
        if row is None:
            raise UsageError(f"there is no channel {name}")
        return _known(row)

    def all(self) -> list[KnownChannel]:
        """In order of creation."""
        with self._catalog.transaction() as connection:
            rows = connection.execute(f"{_KNOWN} ORDER BY id").fetchall()
        return [_known(row) for row in rows]


_KNOWN = "SELECT channels.*, last_execution FROM channels LEFT JOIN dropped_channels USING (name)"


def _dropped(connection: sqlite3.Connection, name: str) -> sqlite3.Row | None:
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM dropped_channels WHERE name = ?", (name,)
    ).fetchone()
    return row


def _require_free(connection: sqlite3.Connection, name: str) -> None:
    row = connection.execute("SELECT name FROM channels WHERE name = ?", (name,)).fetchone()
    if row is not None:
        raise UsageError(f"channel {row['name']} exists already: drop it first")


def _known(row: sqlite3.Row) -> KnownChannel:
    channel = msgspec.json.decode(row["definition"], type=Channel)
    before = row["last_execution"]
    first = (0, 0) if before is None else (before + 2, 0)
    return KnownChannel(row["id"], channel, row["created_s"], first)
