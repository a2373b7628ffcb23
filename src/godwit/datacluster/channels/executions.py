"""Executions of channels in the catalog: the inputs of each are on disk before it runs.

    planned --> done       results are committed and can be pulled
       |
       +------> skipped    by an operator; its records are passed over

X1  A channel has at most one planned execution.  After a crash it is repeated as planned: the same
    batches, the same version of the subscriptions, the same moment.
X2  Each batch of a dataset is new to exactly one execution of a channel.
X3  Results count when their execution is done, which is one transaction.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Collection, Mapping

import msgspec

from godwit.datacluster.catalog import Catalog
from godwit.datacluster.channels.channel_tables import SEQUENCE, VERSION, current, next_of

PLANNED, DONE, SKIPPED = "planned", "done", "skipped"
CREATED = "created"
"""No execution: it stands before the first one."""
ERROR_LENGTH_MAX = 2_000
#: Executions of a channel that are kept for inspection.
REMEMBERED = 1_000


class Range(msgspec.Struct, frozen=True):
    """Batches `after + 1 ... through` are new; the dataset is read up to `through`."""

    after: int
    through: int


Inputs = dict[str, Range]
"""Ranges by name of the dataset."""


class Execution(msgspec.Struct, frozen=True):
    channel: int
    number: int
    inputs: Inputs
    version: int
    moment_s: float
    attempts: int = 0
    error: str | None = None
    deaths: int = 0
    """How often Spark has died during it."""

    is_stopped: bool = False
    """It is not tried again before an operator says so."""


class Timings(msgspec.Struct, frozen=True):
    subscriptions_s: float = 0.0
    """Loading the subscriptions into Spark."""

    planning_s: float = 0.0
    running_s: float = 0.0
    writing_s: float = 0.0


class ExecutionOutcome(msgspec.Struct, frozen=True):
    """An execution and its state."""

    channel: int
    number: int
    state: str
    moment_s: float
    inputs: Inputs
    attempts: int
    error: str | None
    rows: int
    bytes: int
    done_s: float | None
    timings: Timings | None


class Executions:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def plan(
        self, channel: int, last: Mapping[str, int], news: Collection[str], *, now_s: float
    ) -> Execution | None:
        """The execution to run: the planned one, or else the next one.

        `last` is the last batch of each dataset, `news` are the datasets whose new records the
        query reads.  None if none of these has any.
        """
        with self._catalog.transaction() as connection:
            row = _last(connection, channel)
            before = _execution(row)
            if row["state"] == PLANNED:
                return before  # X1
            inputs = {
                name: Range(range.through, max(range.through, last.get(name, 0)))
                for name, range in before.inputs.items()
            }
            if all(inputs[name].after == inputs[name].through for name in news):
                return None
            version = current(connection, VERSION)
            planned = Execution(channel, before.number + 1, inputs, version, now_s)
            _insert(connection, planned, state=PLANNED)
            return planned

    def last(self, channel: int) -> Execution:
        """The last execution, in any state."""
        with self._catalog.transaction() as connection:
            return _execution(_last(connection, channel))

    def read_through(self, channel: int) -> dict[str, int]:
        """The last batch of each dataset that an ended execution has read."""
        with self._catalog.transaction() as connection:
            row = _last(connection, channel)
        return {name: _read_through(range, row) for name, range in _execution(row).inputs.items()}

    def has_planned(self, channel: int) -> bool:
        with self._catalog.transaction() as connection:
            return bool(_last(connection, channel)["state"] == PLANNED)

    def done(
        self,
        execution: Execution,
        *,
        rows: int,
        size_bytes: int,
        timings: Timings,
        plan: str,
        now_s: float,
    ) -> None:
        """X3."""
        plan_id = hashlib.sha256(plan.encode()).hexdigest()
        with self._catalog.transaction() as connection:
            sequence = next_of(connection, SEQUENCE) if rows else None
            connection.execute("INSERT OR IGNORE INTO plans VALUES (?, ?)", (plan_id, plan))
            connection.execute(
                """UPDATE executions SET state = ?, sequence = ?, rows = ?, bytes = ?, is_kept = ?,
                error = NULL, done_s = ?, timings = ?, plan = ? WHERE channel = ? AND number = ?""",
                (
                    *(DONE, sequence, rows, size_bytes, rows > 0, now_s),
                    *(msgspec.json.encode(timings), plan_id, execution.channel, execution.number),
                ),
            )

    def failed(
        self, execution: Execution, error: str, *, has_died: bool = False, is_stopped: bool = False
    ) -> None:
        """`has_died` if Spark died during it."""
        with self._catalog.transaction() as connection:
            connection.execute(
                """UPDATE executions SET attempts = attempts + 1, error = ?, deaths = deaths + ?,
                is_stopped = ? WHERE channel = ? AND number = ?""",
                (
                    *(error[:ERROR_LENGTH_MAX], has_died, is_stopped),
                    *(execution.channel, execution.number),
                ),
            )

    def resume(self, channel: int) -> Execution | None:
        """Let the planned execution be tried again; None if there is none."""
        with self._catalog.transaction() as connection:
            row = _last(connection, channel)
            if row["state"] != PLANNED:
                return None
            connection.execute(
                "UPDATE executions SET deaths = 0, is_stopped = 0 WHERE channel = ? AND number = ?",
                (channel, row["number"]),
            )
            return _execution(row)

    def skip(self, channel: int, *, now_s: float) -> Execution | None:
        """Pass over the planned execution; None if there is none."""
        with self._catalog.transaction() as connection:
            row = _last(connection, channel)
            if row["state"] != PLANNED:
                return None
            connection.execute(
                "UPDATE executions SET state = ?, done_s = ? WHERE channel = ? AND number = ?",
                (SKIPPED, now_s, channel, row["number"]),
            )
            return _execution(row)

    def forget(self, channel: int) -> None:
        """Remove all but the last executions and those whose results are kept."""
        with self._catalog.transaction() as connection:
            connection.execute(
                "DELETE FROM executions WHERE channel = ? AND number < ? AND NOT is_kept",
                (channel, _last(connection, channel)["number"] - REMEMBERED),
            )
            connection.execute(
                """DELETE FROM plans WHERE id NOT IN
                (SELECT plan FROM executions WHERE plan IS NOT NULL)"""
            )

    # -- queries -------------------------------------------------------------------------------

    def recent(self, channel: int, *, limit: int = 20) -> list[ExecutionOutcome]:
        """The last executions, latest first."""
        with self._catalog.transaction() as connection:
            rows = connection.execute(
                """SELECT * FROM executions WHERE channel = ? AND number > 0 AND state != ?
                ORDER BY number DESC LIMIT ?""",
                (channel, CREATED, limit),
            )
            return [_outcome(row) for row in rows]

    def plan_of_last(self, channel: int) -> str | None:
        """Spark's plan of the last execution."""
        with self._catalog.transaction() as connection:
            row = connection.execute(
                """SELECT text FROM executions JOIN plans ON id = plan
                WHERE channel = ? ORDER BY number DESC LIMIT 1""",
                (channel,),
            ).fetchone()
            return None if row is None else str(row[0])

    def oldest_needed(self) -> dict[str, int]:
        """Batches after these may still be read as new, by dataset in lower case."""
        with self._catalog.transaction() as connection:
            rows = connection.execute(
                """SELECT inputs, state FROM executions JOIN channels ON channels.id = channel
                WHERE number = (
                    SELECT max(number) FROM executions WHERE channel = channels.id
                )"""
            ).fetchall()
        needed: dict[str, int] = {}
        for row in rows:
            for name, range in msgspec.json.decode(row["inputs"], type=Inputs).items():
                through = _read_through(range, row)
                needed[name.lower()] = min(needed.get(name.lower(), through), through)
        return needed


def begin(
    connection: sqlite3.Connection, channel: int, inputs: Inputs, *, number: int, now_s: float
) -> None:
    """Executions of a created channel have higher numbers; existing batches are not new to it."""
    _insert(connection, Execution(channel, number, inputs, 0, now_s), state=CREATED)


def _read_through(range: Range, row: sqlite3.Row) -> int:
    """The last batch of a dataset that was read, by the last execution of a channel."""
    return range.after if row["state"] == PLANNED else range.through


def _last(connection: sqlite3.Connection, channel: int) -> sqlite3.Row:
    row: sqlite3.Row = connection.execute(
        "SELECT * FROM executions WHERE channel = ? ORDER BY number DESC LIMIT 1", (channel,)
    ).fetchone()
    return row


def _insert(connection: sqlite3.Connection, execution: Execution, *, state: str) -> None:
    connection.execute(
        """INSERT INTO executions (channel, number, inputs, version, moment_s, state)
        VALUES (?, ?, ?, ?, ?, ?)""",
        (
            *(execution.channel, execution.number, msgspec.json.encode(execution.inputs)),
            *(execution.version, execution.moment_s, state),
        ),
    )


def _execution(row: sqlite3.Row) -> Execution:
    inputs = msgspec.json.decode(row["inputs"], type=Inputs)
    return Execution(
        row["channel"],
        row["number"],
        inputs,
        row["version"],
        row["moment_s"],
        row["attempts"],
        row["error"],
        row["deaths"],
        bool(row["is_stopped"]),
    )


def _outcome(row: sqlite3.Row) -> ExecutionOutcome:
    timings = row["timings"]
    return ExecutionOutcome(
        channel=row["channel"],
        number=row["number"],
        state=row["state"],
        moment_s=row["moment_s"],
        inputs=msgspec.json.decode(row["inputs"], type=Inputs),
        attempts=row["attempts"],
        error=row["error"],
        rows=row["rows"],
        bytes=row["bytes"],
        done_s=row["done_s"],
        timings=None if timings is None else msgspec.json.decode(timings, type=Timings),
    )
