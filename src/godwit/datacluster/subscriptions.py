"""BE subscriptions: channel and arguments, each once in the data cluster, held by brokers.

A subscription is in force from one version of all subscriptions until another.  An execution
remembers its version: so it sees the same subscriptions when it is repeated after a crash.

U1  Equal arguments for the same channel are one subscription, whoever asks.
U2  It is in force while somebody holds it, or has let it go less than `offline_s` ago.
U3  What was answered is on the disk; asking again changes nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from godwit.datacluster.arguments import canonical
from godwit.datacluster.catalog import Catalog
from godwit.datacluster.channel import Channel
from godwit.datacluster.channel_tables import VERSION, next_of

#: Beyond every ordinal: everything of an execution.
LAST_ORDINAL = 2**62


class Subscribed(msgspec.Struct, frozen=True):
    id: int
    after_execution: int
    """Results of later executions are for this holder."""

    last_execution: int
    """The last that was planned when it was asked for."""


class Position(NamedTuple):
    execution: int
    ordinal: int


class Change(NamedTuple):
    """What happened to the subscriptions of a channel between two versions."""

    added: list[tuple[int, bytes]]
    removed: list[int]


class Subscriptions:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    # -- what brokers ask ----------------------------------------------------------------------

    def subscribe(
        self,
        broker: str,
        channel_id: int,
        channel: Channel,
        all_arguments: Sequence[Mapping[str, object]],
    ) -> list[Subscribed]:
        """Hold a subscription for each; who holds it already gets the same answer again."""
        keys = [canonical(channel, arguments) for arguments in all_arguments]
        with self._catalog.transaction() as connection:
            version = next_of(connection, VERSION)
            row = connection.execute(
                "SELECT max(number) FROM executions WHERE channel = ?", (channel_id,)
            ).fetchone()
            after = int(row[0] or 0)
            return [_hold(connection, broker, channel_id, key, version, after) for key in keys]

    def unsubscribe(self, broker: str, subscription: int) -> None:
        """Nobody at this broker wants it any more."""
        with self._catalog.transaction() as connection:
            connection.execute(
                "DELETE FROM holds WHERE broker = ? AND subscription = ?", (broker, subscription)
            )
            _remove_unheld(connection, [subscription])

    def release(self, broker: str, subscription: int, *, now_s: float) -> None:
        """Whoever wanted it is offline, and may come back."""
        with self._catalog.transaction() as connection:
            connection.execute(
                """UPDATE holds SET released_s = coalesce(released_s, ?)
                WHERE broker = ? AND subscription = ?""",
                (now_s, broker, subscription),
            )

    def release_all(self, broker: str, *, now_s: float) -> None:
        """The broker has started anew: whoever it had may come back."""
        with self._catalog.transaction() as connection:
            connection.execute(
                "UPDATE holds SET released_s = coalesce(released_s, ?) WHERE broker = ?",
                (now_s, broker),
            )

    def purge(self, *, released_before_s: float) -> int:
        """Forget whoever did not come back; how many subscriptions ended."""
        with self._catalog.transaction() as connection:
            rows = connection.execute(
                "DELETE FROM holds WHERE released_s < ? RETURNING subscription",
                (released_before_s,),
            ).fetchall()
            return _remove_unheld(connection, [row[0] for row in rows])

    def acknowledge(self, broker: str, positions: Mapping[int, Position]) -> None:
        """Results up to there have arrived; earlier positions change nothing."""
        rows = [(*position, broker, id, *position) for id, position in positions.items()]
        with self._catalog.transaction() as connection:
            connection.executemany(
                """UPDATE holds SET acknowledged_execution = ?, acknowledged_ordinal = ?
                WHERE broker = ? AND subscription = ?
                AND (acknowledged_execution, acknowledged_ordinal) < (?, ?)""",
                rows,
            )

    # -- what executions ask -------------------------------------------------------------------

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
        """No execution will ask about versions up to there again."""
        with self._catalog.transaction() as connection:
            connection.execute(
                "DELETE FROM subscriptions WHERE channel = ? AND removed <= ?",
                (channel_id, through),
            )

    # -- what others want to know --------------------------------------------------------------

    def held_by(self, broker: str, channel_id: int) -> list[tuple[int, int]]:
        """Subscriptions of a channel that a broker holds: id, and after which execution."""
        with self._catalog.transaction() as connection:
            rows = connection.execute(
                """SELECT subscription, after_execution FROM holds
                JOIN subscriptions ON id = subscription
                WHERE broker = ? AND channel = ? ORDER BY subscription""",
                (broker, channel_id),
            )
            return [(row[0], row[1]) for row in rows]

    def acknowledged(self, channel_id: int) -> list[tuple[int, int, int]]:
        """For each hold on the channel: subscription, execution and ordinal."""
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
        """How many are in force, by channel id."""
        with self._catalog.transaction() as connection:
            rows = connection.execute(
                "SELECT channel, count(*) FROM subscriptions WHERE removed IS NULL GROUP BY 1"
            )
            return {row[0]: row[1] for row in rows}


def _hold(
    connection: sqlite3.Connection, broker: str, channel: int, key: bytes, version: int, after: int
) -> Subscribed:
    row = connection.execute(
        "SELECT id FROM subscriptions WHERE channel = ? AND arguments = ? AND removed IS NULL",
        (channel, key),
    ).fetchone()
    if row is None:
        row = connection.execute(
            "INSERT INTO subscriptions (channel, arguments, added) VALUES (?, ?, ?) RETURNING id",
            (channel, key, version),
        ).fetchone()
    held = connection.execute(
        """INSERT INTO holds VALUES (?, ?, ?, ?, ?, NULL)
        ON CONFLICT DO UPDATE SET released_s = NULL RETURNING after_execution""",
        (broker, row[0], after, after, LAST_ORDINAL),
    ).fetchone()
    return Subscribed(row[0], held[0], after)


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
