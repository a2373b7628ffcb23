"""The lease of a folder: one process writes at a time, and a standby can take its place.

    holder    beats: a counter in the catalog rises every BEAT_S
    standby   takes over when the holder's process has ended, or has not beaten for `lease_s`

A process that is only slow, or asleep, may wake after its lease was taken.  It must do no harm:

H1  Each lease has a number, the epoch.  Every transaction of the catalog compares it first: after
    the lease was taken, nothing that the old holder does is committed.
H2  A record is acknowledged when it is on disk and the epoch is still the writer's own.  The new
    holder reads the logs after it has taken the lease: it has all records that were acknowledged.
H3  The new holder replaces the files that the old one has open: what the old one still writes goes
    to files without a name.

No clocks are compared: a standby measures by its own how long it has seen no beat.
"""

from __future__ import annotations

import logging
import os
import shutil
import socket
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from godwit.datacluster.catalog import FILE_NAME, FencedError
from godwit.datacluster.disk import LOCK_NAME, lock_of, sync
from godwit.datacluster.log import log_frames
from godwit.datacluster.log.durable_position import FILE_NAME as DURABLE_NAME
from godwit.errors import UsageError

log = logging.getLogger("godwit.lease")

LEASE_S = 5.0
BEAT_S = 1.0
BUSY_S = 5.0
HOLDER_PREFIX = "holder-"
"""Of the files that holders lock, one for each epoch: two processes cannot lock the same one."""
TABLE = """CREATE TABLE IF NOT EXISTS lease (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    epoch INTEGER NOT NULL,
    beats INTEGER NOT NULL,
    holder TEXT NOT NULL
)"""


class _Seen(NamedTuple):
    epoch: int
    beats: int
    holder: str
    """Empty if the lease was given back."""


class Lease:
    """Of one process.  May be used from several threads."""

    def __init__(self, folder: Path, *, lease_s: float = LEASE_S, beat_s: float = BEAT_S) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._lease_s = lease_s
        self._beat_s = beat_s
        self._connection = sqlite3.connect(
            folder / FILE_NAME, check_same_thread=False, isolation_level=None, timeout=BUSY_S
        )
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute(TABLE)
        self._connection.execute("INSERT OR IGNORE INTO lease VALUES (1, 0, 0, '')")
        self._lock = threading.Lock()
        self._seen = self._look()
        self._seen_s = time.monotonic()
        self._holding: int | None = None
        """Locked as long as this process lives: on one machine a standby sees that it has ended."""
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self.epoch = 0
        """Of the lease that this process holds; 0 without one."""

    # -- taking --------------------------------------------------------------------------------

    def take(self) -> None:
        """UsageError if another process has it."""
        if not self.try_to_take():
            raise UsageError(
                f"{self._folder}: another process has this open ({self._seen.holder}); stop it, or"
                " start this one with --standby"
            )

    def try_to_take(self) -> bool:
        """Take the lease if it is free, its holder has ended, or has been silent for too long."""
        seen, now_s = self._look(), time.monotonic()
        if seen != self._seen:
            self._seen, self._seen_s = seen, now_s
        has_ended = not seen.holder or self._has_ended(seen)
        if not has_ended and now_s - self._seen_s < self._lease_s:
            return False
        # Locked before the lease is taken, so that no other standby takes this process for ended.
        lock = lock_of(self._file_of(seen.epoch + 1))
        if lock is None:
            return False  # Another standby is about to take it.
        if not self._replace(seen):
            os.close(lock)
            return False
        self._holding = lock
        self._file_of(seen.epoch).unlink(missing_ok=True)
        if not has_ended:
            _displace(self._folder)
        if seen.holder:
            log.warning("took the place of another process", extra={"of": seen.holder})
        return True

    def _has_ended(self, seen: _Seen) -> bool:
        """Only known of a process on this machine."""
        if not seen.holder.startswith(f"{socket.gethostname()}/"):
            return False
        lock = lock_of(self._file_of(seen.epoch))
        if lock is None:
            return False
        os.close(lock)
        return True

    def _file_of(self, epoch: int) -> Path:
        return self._folder / f"{HOLDER_PREFIX}{epoch}"

    def _replace(self, seen: _Seen) -> bool:
        """False if another process was faster, or the holder has beaten again."""
        mine = f"{socket.gethostname()}/{os.getpid()}"
        with self._lock:
            try:
                cursor = self._connection.execute(
                    """UPDATE lease SET epoch = epoch + 1, beats = 0, holder = ?
                    WHERE epoch = ? AND beats = ? AND holder = ?""",
                    (mine, *seen),
                )
            except sqlite3.OperationalError as error:  # The holder is asleep in a transaction.
                log.warning("cannot take the lease", extra={"error": str(error)})
                return False
            if cursor.rowcount:
                self.epoch = seen.epoch + 1
            return bool(cursor.rowcount)

    # -- holding -------------------------------------------------------------------------------

    def hold(self, on_lost: Callable[[], None]) -> None:
        """Beat until `give_back`; `on_lost` is called if another process has taken the lease."""
        self._thread = threading.Thread(
            target=self._beat, args=(on_lost,), name="lease", daemon=True
        )
        self._thread.start()

    def check(self) -> None:
        """FencedError if another process has taken the lease (H2)."""
        if self._look().epoch != self.epoch:
            raise FencedError("another process has taken over this data cluster")

    def give_back(self) -> None:
        """Others may take it at once."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            self._connection.execute(
                "UPDATE lease SET holder = '', beats = beats + 1 WHERE epoch = ?", (self.epoch,)
            )
            self._connection.close()
        if self._holding is not None:
            self._file_of(self.epoch).unlink(missing_ok=True)
            os.close(self._holding)

    def _beat(self, on_lost: Callable[[], None]) -> None:
        while not self._ending.wait(self._beat_s):
            try:
                with self._lock:
                    cursor = self._connection.execute(
                        "UPDATE lease SET beats = beats + 1 WHERE epoch = ?", (self.epoch,)
                    )
            except sqlite3.Error:  # For example a full disk: the next beat may do.
                log.exception("cannot beat")
                continue
            if not cursor.rowcount:
                log.critical("another process has taken over this data cluster")
                on_lost()
                return

    def _look(self) -> _Seen:
        with self._lock:
            row = self._connection.execute("SELECT epoch, beats, holder FROM lease").fetchone()
        return _Seen(*row)


def _displace(folder: Path) -> None:
    """Replace the files that the old holder has open (H3)."""
    (folder / LOCK_NAME).unlink(missing_ok=True)
    for log_folder in (folder / "logs").glob("*"):
        (log_folder / LOCK_NAME).unlink(missing_ok=True)
        (log_folder / DURABLE_NAME).unlink(missing_ok=True)
        for path in log_frames.segments(log_folder)[-1:]:
            copy = path.with_suffix(".copy")
            with suppress(FileNotFoundError):
                shutil.copyfile(path, copy)
                sync(copy)
                copy.replace(path)
        sync(log_folder)
