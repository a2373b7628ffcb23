"""Definitions of channels in the catalog, each with an id that is never reused."""

from __future__ import annotations

import sqlite3

import msgspec

from godwit.datacluster.catalog import Catalog
from godwit.datacluster.channels.executions import Inputs, begin
from godwit.datacluster.model.channel import Channel
from godwit.errors import UsageError


class KnownChannel(msgspec.Struct, frozen=True):
    """A channel in the catalog."""

    id: int
    channel: Channel
    created_s: float


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
            begin(connection, cursor.lastrowid, inputs, now_s=now_s)

    def require_free(self, name: str) -> None:
        with self._catalog.transaction() as connection:
            _require_free(connection, name)

    def remove(self, channel_id: int) -> None:
        """Remove a channel with its subscriptions and executions."""
        with self._catalog.transaction() as connection:
            connection.execute("DELETE FROM channels WHERE id = ?", (channel_id,))

    def known(self, name: str) -> KnownChannel:
        with self._catalog.transaction() as connection:
            row = connection.execute("SELECT * FROM channels WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise UsageError(f"there is no channel {name}")
        return _known(row)

    def all(self) -> list[KnownChannel]:
        """In order of creation."""
        with self._catalog.transaction() as connection:
            rows = connection.execute("SELECT * FROM channels ORDER BY id").fetchall()
        return [_known(row) for row in rows]


def _require_free(connection: sqlite3.Connection, name: str) -> None:
    row = connection.execute("SELECT name FROM channels WHERE name = ?", (name,)).fetchone()
    if row is not None:
        raise UsageError(f"channel {row['name']} exists already: drop it first")


def _known(row: sqlite3.Row) -> KnownChannel:
    channel = msgspec.json.decode(row["definition"], type=Channel)
    return KnownChannel(row["id"], channel, row["created_s"])
