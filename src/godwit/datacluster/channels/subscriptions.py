"""BE subscriptions: channel and arguments, each once in the data cluster, held by brokers.

A subscription is in force from one version of all subscriptions until another.  An execution stores
its version, so it reads the same subscriptions when it is repeated after a crash.

U1  Equal arguments for the same channel are one subscription, for all brokers.
U2  It is in force while a broker holds it, or has released it less than `offline_s` ago.
U3  Answers are sent after the change is on disk; repeated requests change nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from godwit.api.datacluster_api import Granted
from godwit.content.channel_messages import Position
from godwit.datacluster.catalog import Catalog
from godwit.datacluster.channels.channel_tables import VERSION, next_of
from godwit.errors import UsageError


class Change(NamedTuple):
    """Changes to the subscriptions of a channel between two versions."""

    added: list[tuple[int, bytes]]
    removed: list[int]


class Subscriptions:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    # -- requests of brokers -------------------------------------------------------------------

    def subscribe(
        self, broker: str, channel_id: int, all_arguments: Sequence[bytes]
    ) -> list[Granted]:
        """Hold a subscription for each of the canonical arguments.  Idempotent (U3).

        Raises UsageError if there is no such channel any more.
        """
        with self._catalog.transaction() as connection:
            version = next_of(connection, VERSION)
            row = connection.execute(
                "SELECT max(number) FROM executions WHERE channel = ?", (channel_id,)
            ).fetchone()
            if row[0] is None:
                raise UsageError("the channel was dropped")
            after = int(row[0])
            ids = [
                _hold(connection, broker, channel_id, arguments, version, after)
                for arguments in all_arguments
            ]
            return [Granted(id=id, start=(after + 1, 0)) for id in ids]

    def unsubscribe(self, broker: str, subscription: int) -> None:
        """The broker holds it no longer."""
        with self._catalog.transaction() as connection:
            connection.execute(
                "DELETE FROM holds WHERE broker = ? AND subscription = ?", (broker, subscription)
            )
            _remove_unheld(connection, [subscription])

    def release(self, broker: str, subscription: int, *, now_s: float) -> None:
        """Its subscribers at the broker are offline, and may return."""
        with self._catalog.transaction() as connection:
            connection.execute(
                """UPDATE holds SET released_s = coalesce(released_s, ?)
                WHERE broker = ? AND subscription = ?""",
                (now_s, broker, subscription),
            )

    def release_all(self, broker: str, *, now_s: float) -> None:
        """The broker has restarted: its former subscribers may return."""
        with self._catalog.transaction() as connection:
            connection.execute(
                "UPDATE holds SET released_s = coalesce(released_s, ?) WHERE broker = ?",
                (now_s, broker),
            )

    def purge(self, *, released_before_s: float) -> int:
        """Remove holds that were released before; the number of subscriptions that ended."""
        with self._catalog.transaction() as connection:
            rows = connection.execute(
                "DELETE FROM holds WHERE released_s < ? RETURNING subscription",
                (released_before_s,),
            ).fetchall()
            return _remove_unheld(connection, [row[0] for row in rows])

    def acknowledge(self, broker: str, positions: Mapping[int, Position]) -> None:
        """Results before the positions have arrived; earlier positions change nothing."""
        rows = [(*position, broker, id, *position) for id, position in positions.items()]
        with self._catalog.transaction() as connection:
            connection.executemany(
                """UPDATE holds SET acknowledged_execution = ?, acknowledged_ordinal = ?
                WHERE broker = ? AND subscription = ?
                AND (acknowledged_execution, acknowledged_ordinal) < (?, ?)""",
                rows,
            )

    # -- for executions ------------------------------------------------------------------------

    def in_force(self, channel_id: int, *, version: int) -> list[tuple[int, bytes]]:
        with self._catalog.transaction() as connection:
            rows = connection.execute(
                """SELECT id, arguments FROM subscriptions
                WHERE channel = ? AND added <= ? AND (removed IS NULL OR removed > ?)
                ORDER BY id""",
                (channel_id, version, version),
            )
            return [(row[0], row[1]) for row in rows]

    def changes(self, channel_id: int, *, after: int, through: int) -> Change:
        with self._catalog.transaction() as connection:
            added = connection.execute(
                """SELECT id, arguments FROM subscriptions
                WHERE channel = ? AND added > ? AND added <= ?
                AND (removed IS NULL OR removed > ?) ORDER BY id""",
                (channel_id, after, through, through),
            ).fetchall()
            removed = connection.execute(
                """SELECT id FROM subscriptions
                WHERE channel = ? AND removed > ? AND removed <= ? AND added <= ?""",
                (channel_id, after, through, after),
            ).fetchall()
            return Change([(row[0], row[1]) for row in added], [row[0] for row in removed])

    def forget_removed(self, channel_id: int, *, through: int) -> None:
        """No execution needs versions up to `through` again."""
        with self._catalog.transaction() as connection:
            connection.execute(
                "DELETE FROM subscriptions WHERE channel = ? AND removed <= ?",
                (channel_id, through),
            )

    # -- queries -------------------------------------------------------------------------------

    def held_by(self, broker: str, channel_id: int) -> list[tuple[int, int]]:
        """What a broker holds of a channel: subscription, and last execution before the hold."""
        with self._catalog.transaction() as connection:
            rows = connection.execute(
                """SELECT subscription, after_execution FROM holds
                JOIN subscriptions ON id = subscription
                WHERE broker = ? AND channel = ? ORDER BY subscription""",
                (broker, channel_id),
            )
            return [(row[0], row[1]) for row in rows]

    def acknowledged(self, channel_id: int) -> list[tuple[int, int, int]]:
        """For each hold on the channel: subscription, and execution and ordinal of the next row."""
        with self._catalog.transaction() as connection:
            rows = connection.execute(
                """SELECT subscription, acknowledged_execution, acknowledged_ordinal
                FROM holds JOIN subscriptions ON id = subscription WHERE channel = ?""",
                (channel_id,),
            )
            return [(row[0], row[1], row[2]) for row in rows]

    def channels_of(self, ids: Iterable[int]) -> dict[int, int]:
        """The channel of each subscription that is in force."""
        with self._catalog.transaction() as connection:
            found: dict[int, int] = {}
            for id in ids:
                row = connection.execute(
                    "SELECT channel FROM subscriptions WHERE id = ? AND removed IS NULL", (id,)
                ).fetchone()
                if row is not None:
                    found[id] = row[0]
            return found

    def counts(self) -> dict[int, int]:
        """Numbers of subscriptions in force, by channel id."""
        with self._catalog.transaction() as connection:
            rows = connection.execute(
                "SELECT channel, count(*) FROM subscriptions WHERE removed IS NULL GROUP BY 1"
            )
            return {row[0]: row[1] for row in rows}


def _hold(
    connection: sqlite3.Connection,
    broker: str,
    channel: int,
    arguments: bytes,
    version: int,
    after: int,
) -> int:
    row = connection.execute(
        "SELECT id FROM subscriptions WHERE channel = ? AND arguments = ? AND removed IS NULL",
        (channel, arguments),
    ).fetchone()
    if row is None:
        row = connection.execute(
            "INSERT INTO subscriptions (channel, arguments, added) VALUES (?, ?, ?) RETURNING id",
            (channel, arguments, version),
        ).fetchone()
    id = int(row[0])
    connection.execute(
        """INSERT INTO holds VALUES (?, ?, ?, ?, 0, NULL)
        ON CONFLICT DO UPDATE SET released_s = NULL""",
        (broker, id, after, after + 1),
    )
    return id


def _remove_unheld(connection: sqlite3.Connection, subscriptions: Iterable[int]) -> int:
    """U2."""
    unheld = [
        id
        for id in dict.fromkeys(subscriptions)
        if not connection.execute("SELECT 1 FROM holds WHERE subscription = ?", (id,)).fetchone()
    ]
    if unheld:
        version = next_of(connection, VERSION)
        connection.executemany(
            "UPDATE subscriptions SET removed = ? WHERE id = ?", [(version, id) for id in unheld]
        )
    return len(unheld)
