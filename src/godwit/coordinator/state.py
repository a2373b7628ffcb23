"""The persistent state of the coordinator: one SQLite file.

Answered requests survive the end of the process, also by kill -9.  They may be lost if the machine
fails: brokers and users register again, and hold times are short, so no answer waits for the disk.
Changes of the network and the authority do wait for it: an authority is never given twice.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

import msgspec

from godwit.api.coordinator_api import MoveRecord, PlanRecord
from godwit.api.network_api import NetworkChange
from godwit.coordinator.broker_records import (
    AuthorityRecord,
    BrokerLeft,
    BrokerRecord,
    Change,
    Forgotten,
    ForgottenChange,
    Kept,
    Memory,
    UserRecord,
)
from godwit.errors import UsageError

FILE_NAME = "coordinator.db"
KINDS: dict[str, type[Kept]] = {
    "broker": BrokerRecord,
    "user": UserRecord,
    "plan": PlanRecord,
    "move": MoveRecord,
    "change": NetworkChange,
    "authority": AuthorityRecord,
}
KIND_OF = {record: kind for kind, record in KINDS.items()}
#: What deletes a record, and of which kind.
DELETES = {Forgotten: "move", BrokerLeft: "broker", ForgottenChange: "change"}


class State:
    """For one process at a time: a second one gets a UsageError."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(folder / FILE_NAME, isolation_level=None, timeout=1)
            self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS record"
                " (kind TEXT, name TEXT, body BLOB NOT NULL, PRIMARY KEY (kind, name))"
            )
        except (OSError, sqlite3.Error) as error:
            raise UsageError(f"cannot use the state folder {folder}: {error}") from None

    def load(self) -> Memory:
        memory = Memory()
        for kind, body in self._connection.execute("SELECT kind, body FROM record"):
            memory.apply(msgspec.json.decode(body, type=KINDS[kind]))
        return memory

    def save(self, changes: Iterable[Change]) -> None:
        """Save all of them or none; sqlite3.Error if that fails."""
        connection, changes = self._connection, list(changes)
        is_vital = any(isinstance(each, NetworkChange | AuthorityRecord) for each in changes)
        connection.execute(f"PRAGMA synchronous = {'FULL' if is_vital else 'NORMAL'}")
        connection.execute("BEGIN IMMEDIATE")
        try:
            for change in changes:
                if isinstance(change, Forgotten | BrokerLeft | ForgottenChange):
                    connection.execute(
                        "DELETE FROM record WHERE kind = ? AND name = ?",
                        [DELETES[type(change)], _name(change)],
                    )
                else:
                    connection.execute(
                        "INSERT OR REPLACE INTO record VALUES (?, ?, ?)",
                        [KIND_OF[type(change)], _name(change), msgspec.json.encode(change)],
                    )
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def close(self) -> None:
        self._connection.close()


def _name(change: Change) -> str:
    match change:
        case BrokerRecord(broker=name) | UserRecord(user=name) | BrokerLeft(broker=name):
            return name
        case PlanRecord() | AuthorityRecord():
            return "last"
        case MoveRecord(number=number) | Forgotten(number=number):
            return str(number)
        case NetworkChange(number=number) | ForgottenChange(number=number):
            return str(number)
