"""What brokers ask about results: what is new, the rows themselves, and until when they are kept.

    notices   which subscriptions of a broker have results in which executions, in the order in
              which executions were done, numbered by a sequence that the broker remembers
    pull      rows behind a position, without Spark

R1  A row is at (execution, ordinal) of its subscription for ever: who asks again gets the same.
R2  Results are kept until every holder of their subscriptions has acknowledged them, and not longer
    than `keep_s`.  `kept_from` says what is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
import numpy as np
import pyarrow as pa

from godwit.datacluster.catalog import Catalog
from godwit.datacluster.channel_query import SUBSCRIPTION
from godwit.datacluster.channel_tables import SEQUENCE, current
from godwit.datacluster.executions import DONE
from godwit.datacluster.result_files import BYTES, ORDINAL, Integers, ResultFiles
from godwit.datacluster.subscriptions import Position, Subscriptions

NOTICES_MAX = 256


class Notice(msgspec.Struct, frozen=True):
    sequence: int
    channel: str
    execution: int
    subscriptions: list[int]
    """Those that the broker holds and that have results."""

    bytes: list[int]
    """How much, for each of them."""


class Notices(msgspec.Struct, frozen=True):
    notices: list[Notice]
    through: int
    """The sequence number up to which that is all."""


class ResultRow(msgspec.Struct, frozen=True):
    subscription: int
    execution: int
    ordinal: int
    values: dict[str, object]


class Pulled(msgspec.Struct, frozen=True):
    rows: list[ResultRow]
    """By execution; those of a subscription in the order of their positions."""

    is_complete: bool
    """There is no more at this moment."""

    through: int
    """If it is complete, the last execution that was looked at."""

    moments_s: dict[int, float]
    """When the executions began."""

    kept_from: int
    """Results of earlier executions may be gone: nobody needed them any more, or too long."""


class Results:
    def __init__(self, catalog: Catalog, files: ResultFiles, subscriptions: Subscriptions) -> None:
        self._catalog = catalog
        self._files = files
        self._subscriptions = subscriptions
        with catalog.transaction() as connection:
            rows = connection.execute("SELECT channel, number FROM executions WHERE is_kept")
            kept = {(row[0], row[1]) for row in rows}
        files.remove_all_but(kept)

    def notices(self, broker: str, *, after: int, channel_name: Callable[[int], str]) -> Notices:
        """What was done after the sequence number `after`, as far as it concerns the broker."""
        with self._catalog.transaction() as connection:
            rows = connection.execute(
                """SELECT sequence, channel, number FROM executions
                WHERE sequence > ? AND is_kept ORDER BY sequence LIMIT ?""",
                (after, NOTICES_MAX),
            ).fetchall()
        notices = []
        for row in rows:
            ids, sizes = self._concerned(broker, row["channel"], row["number"])
            if ids:
                name = channel_name(row["channel"])
                notices.append(Notice(row["sequence"], name, row["number"], ids, sizes))
        return Notices(notices, through=rows[-1]["sequence"] if rows else after)

    def last_notice(self) -> int:
        with self._catalog.transaction() as connection:
            return current(connection, SEQUENCE)

    def pull(
        self, channel_id: int, positions: Mapping[int, Position], *, limit_bytes: int
    ) -> Pulled:
        """Rows behind the position of each subscription, about `limit_bytes`, at least one."""
        oldest = min((position.execution for position in positions.values()), default=0)
        with self._catalog.transaction() as connection:
            kept = {
                row[0]: row[1]
                for row in connection.execute(
                    """SELECT number, moment_s FROM executions
                    WHERE channel = ? AND number >= ? AND is_kept ORDER BY number""",
                    (channel_id, oldest),
                )
            }
            row = connection.execute(
                """SELECT min(CASE WHEN is_kept THEN number END), max(number) FROM executions
                WHERE channel = ? AND state = ?""",
                (channel_id, DONE),
            ).fetchone()
        through = row[1] or 0
        kept_from = row[0] if row[0] is not None else through + 1
        rows: list[ResultRow] = []
        left_bytes = limit_bytes
        for number in kept:
            try:
                table = self._behind(channel_id, number, positions)
            except FileNotFoundError:  # Retention was faster.
                continue
            fits = int(np.searchsorted(np.cumsum(table[BYTES].to_numpy()), left_bytes, "right"))
            taken = table.slice(0, max(fits, 0 if rows else 1))
            rows += _rows(taken, number)
            if taken.num_rows < table.num_rows:
                return Pulled(rows, False, number, kept, kept_from)
            left_bytes -= int(np.sum(taken[BYTES].to_numpy()))
        return Pulled(rows, True, through, kept, kept_from)

    def retain(self, channel_id: int, *, done_before_s: float) -> int:
        """Forget what is too old or not needed any more; how many executions' results (R2)."""
        with self._catalog.transaction() as connection:
            rows = connection.execute(
                "SELECT number, done_s FROM executions WHERE channel = ? AND is_kept",
                (channel_id,),
            ).fetchall()
        if not rows:
            return 0
        gone = []
        holds = np.array(self._subscriptions.acknowledged(channel_id), np.int64).reshape(-1, 3)
        for row in rows:
            number = row["number"]
            if row["done_s"] < done_before_s or self._is_acknowledged(channel_id, number, holds):
                gone.append(number)
        with self._catalog.transaction() as connection:
            connection.executemany(
                "UPDATE executions SET is_kept = 0 WHERE channel = ? AND number = ?",
                [(channel_id, number) for number in gone],
            )
        for number in gone:
            self._files.remove(channel_id, number)
        return len(gone)

    def _concerned(self, broker: str, channel_id: int, number: int) -> tuple[list[int], list[int]]:
        """Subscriptions of the broker with results in an execution, and how many bytes."""
        held = self._subscriptions.held_by(broker, channel_id)
        ids = [id for id, after_execution in held if after_execution < number]
        try:
            contents = self._files.contents(channel_id, number)
        except FileNotFoundError:  # Retention was faster.
            return [], []
        chosen = np.isin(contents.subscriptions, ids)
        return contents.subscriptions[chosen].tolist(), contents.bytes[chosen].tolist()

    def _behind(self, channel_id: int, number: int, positions: Mapping[int, Position]) -> pa.Table:
        after = {
            id: position.ordinal if position.execution == number else -1
            for id, position in positions.items()
            if position.execution <= number
        }
        return self._files.rows(channel_id, number, after)

    def _is_acknowledged(self, channel_id: int, number: int, holds: Integers) -> bool:
        contents = self._files.contents(channel_id, number)
        place = np.searchsorted(contents.subscriptions, holds[:, 0])
        place = place.clip(max=len(contents.subscriptions) - 1)
        concerned = contents.subscriptions[place] == holds[:, 0]
        is_later = holds[:, 1] > number
        is_all = (holds[:, 1] == number) & (holds[:, 2] >= contents.rows[place] - 1)
        return bool(np.all((is_later | is_all)[concerned]))


def _rows(table: pa.Table, execution: int) -> list[ResultRow]:
    ids, ordinals = table[SUBSCRIPTION].to_pylist(), table[ORDINAL].to_pylist()
    values = table.drop_columns([SUBSCRIPTION, ORDINAL, BYTES]).to_pylist()
    return [
        ResultRow(id, execution, ordinal, row)
        for id, ordinal, row in zip(ids, ordinals, values, strict=True)
    ]
