"""Results of executions: which are new, their rows, and how long they are kept.

    notices   which subscriptions of a broker have results in which executions, and which channels
              were dropped, in the order of commits, numbered by a sequence that brokers remember
    pull      rows from a position on, without Spark

R1  A row stays at (execution, ordinal) of its subscription: repeated pulls give the same rows.
R2  Results are kept until every holder of their subscriptions has acknowledged them, and not longer
    than `keep_s`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import suppress

import numpy as np
import pyarrow as pa

from godwit.api.datacluster_api import ChannelDropped, ExecutionRows, Notice, Notices, Pulled
from godwit.content.channel_messages import Position
from godwit.datacluster.catalog import Catalog
from godwit.datacluster.channels.channel_tables import SEQUENCE, current
from godwit.datacluster.channels.executions import DONE
from godwit.datacluster.channels.result_files import BYTES, Integers, ResultFiles
from godwit.datacluster.channels.result_rows import append_rows, by_subscription
from godwit.datacluster.channels.subscriptions import Subscriptions

NOTICES_MAX = 256


class ResultStore:
    def __init__(self, catalog: Catalog, files: ResultFiles, subscriptions: Subscriptions) -> None:
        self._catalog = catalog
        self._files = files
        self._subscriptions = subscriptions
        with catalog.transaction() as connection:
            rows = connection.execute("SELECT channel, number FROM executions WHERE is_kept")
            kept = {(row[0], row[1]) for row in rows}
        files.remove_all_but(kept)

    def notices(self, broker: str, *, after: int) -> Notices:
        """What happened after the sequence number `after`.

        That is executions with results for the broker, and channels that were dropped.
        """
        with self._catalog.transaction() as connection:
            rows = connection.execute(
                """SELECT sequence, channel, number, name FROM executions
                JOIN channels ON channels.id = channel
                WHERE sequence > ? AND is_kept ORDER BY sequence LIMIT ?""",
                (after, NOTICES_MAX),
            ).fetchall()
            drops = connection.execute(
                "SELECT * FROM dropped_channels WHERE sequence > ? ORDER BY sequence", (after,)
            ).fetchall()
        through = rows[-1]["sequence"] if rows else after
        if len(rows) < NOTICES_MAX:
            through = max(through, drops[-1]["sequence"] if drops else after)
        notices = []
        for row in rows:
            ids = self._concerned(broker, row["channel"], row["number"])
            if ids:
                notice = Notice(
                    number=row["sequence"],
                    channel=row["name"],
                    execution=row["number"],
                    subscriptions=ids,
                )
                notices.append(notice)
        dropped = [_channel_dropped(row) for row in drops if row["sequence"] <= through]
        return Notices(notices=notices, through=through, dropped=dropped)

    def last_notice(self) -> int:
        with self._catalog.transaction() as connection:
            return current(connection, SEQUENCE)

    def pull(
        self, channel_id: int, starts: Mapping[int, Position], *, limit_bytes: int
    ) -> list[Pulled]:
        """Rows of each subscription from its start on; about `limit_bytes`, at least one row."""
        kept, last = self._kept(channel_id, since=min(start[0] for start in starts.values()))
        found: dict[int, list[ExecutionRows]] = {id: [] for id in starts}
        end = (last + 1, 0)
        left_bytes, is_first = limit_bytes, True
        for number, executed_s in kept.items():
            for table in self._from(channel_id, number, starts):
                fits = int(np.searchsorted(np.cumsum(table[BYTES].to_numpy()), left_bytes, "right"))
                taken = table.slice(0, max(fits, 1 if is_first else 0))
                for id, rows in by_subscription(taken, execution=number, executed_s=executed_s):
                    append_rows(found[id], rows)
                left_bytes -= int(np.sum(taken[BYTES].to_numpy()))
                is_first = is_first and not taken.num_rows
                if taken.num_rows < table.num_rows:
                    end = (number, 0)
                    break
            if end == (number, 0):
                break
        return [
            Pulled(id=id, start=start, end=max(start, end, _after(found[id])), results=found[id])
            for id, start in starts.items()
        ]

    def _kept(self, channel_id: int, *, since: int) -> tuple[dict[int, float], int]:
        """Executions with results and when they began; the last execution that is done."""
        with self._catalog.transaction() as connection:
            rows = connection.execute(
                """SELECT number, moment_s FROM executions
                WHERE channel = ? AND number >= ? AND is_kept ORDER BY number""",
                (channel_id, since),
            ).fetchall()
            last = connection.execute(
                "SELECT max(number) FROM executions WHERE channel = ? AND state = ?",
                (channel_id, DONE),
            ).fetchone()
        return {row[0]: row[1] for row in rows}, last[0] or 0

    def retain(self, channel_id: int, *, done_before_s: float) -> int:
        """Delete results that are too old or acknowledged (R2); the number of executions."""
        with self._catalog.transaction() as connection:
            rows = connection.execute(
                "SELECT number, done_s FROM executions WHERE channel = ? AND is_kept",
                (channel_id,),
            ).fetchall()
        if not rows:
            return 0
        expired = []
        holds = np.array(self._subscriptions.acknowledged(channel_id), np.int64).reshape(-1, 3)
        for row in rows:
            number = row["number"]
            if row["done_s"] < done_before_s or self._is_acknowledged(channel_id, number, holds):
                expired.append(number)
        with self._catalog.transaction() as connection:
            connection.executemany(
                "UPDATE executions SET is_kept = 0 WHERE channel = ? AND number = ?",
                [(channel_id, number) for number in expired],
            )
        for number in expired:
            self._files.remove(channel_id, number)
        return len(expired)

    def _concerned(self, broker: str, channel_id: int, number: int) -> list[int]:
        """Subscriptions of the broker with results in an execution."""
        held = self._subscriptions.held_by(broker, channel_id)
        ids = [id for id, after_execution in held if after_execution < number]
        try:
            contents = self._files.contents(channel_id, number)
        except FileNotFoundError:  # Removed by retention in the meantime.
            return []
        found: list[int] = contents.subscriptions[np.isin(contents.subscriptions, ids)].tolist()
        return found

    def _from(
        self, channel_id: int, number: int, starts: Mapping[int, Position]
    ) -> Iterator[pa.Table]:
        first = {
            id: row if execution == number else 0
            for id, (execution, row) in starts.items()
            if execution <= number
        }
        with suppress(FileNotFoundError):  # Removed by retention in the meantime.
            yield from self._files.rows(channel_id, number, first)

    def _is_acknowledged(self, channel_id: int, number: int, holds: Integers) -> bool:
        contents = self._files.contents(channel_id, number)
        place = np.searchsorted(contents.subscriptions, holds[:, 0])
        place = place.clip(max=len(contents.subscriptions) - 1)
        concerned = contents.subscriptions[place] == holds[:, 0]
        is_later = holds[:, 1] > number
        is_all = (holds[:, 1] == number) & (holds[:, 2] >= contents.rows[place])
        return bool(np.all((is_later | is_all)[concerned]))


def _channel_dropped(row: sqlite3.Row) -> ChannelDropped:
    return ChannelDropped(
        number=row["sequence"], channel=row["name"], through=row["last_subscription"]
    )


def _after(results: list[ExecutionRows]) -> Position:
    """The position after the last of these rows."""
    return (results[-1].execution, results[-1].first + len(results[-1].rows)) if results else (0, 0)
