"""Housekeeping: a thread that compacts datasets, applies retention and deletes dropped files."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import msgspec

from godwit.datacluster.datasets.compaction import CompactionSettings, compact
from godwit.datacluster.datasets.definitions import DatasetEntry
from godwit.datacluster.datasets.retention import Retention, expired
from godwit.datacluster.datasets.storage import Storage
from godwit.protocol.supervision import survive

log = logging.getLogger("godwit.housekeeping")

#: Limit of compaction steps for one dataset before the next one's turn.
STEPS_MAX = 8
#: How often datasets are looked at while nothing changes.
REST_S = 60.0


class HousekeepingSettings(msgspec.Struct, frozen=True):
    interval_s: float = 2.0
    grace_s: float = 600.0
    """How long a replaced file is kept for readers that are not registered."""

    compaction: CompactionSettings = CompactionSettings()
    retention: Retention = Retention()
    """Applies to datasets without a key."""


class Housekeeping:
    """`horizon` returns, for a dataset, the batch up to which channels have read all batches."""

    def __init__(
        self, storage: Storage, horizon: Callable[[str], int], settings: HousekeepingSettings
    ) -> None:
        self._storage = storage
        self._horizon = horizon
        self._settings = settings
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._changes = -1
        """Of the catalog, when the datasets were last looked at."""
        self._next_s = 0.0

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def _tidy(self, entry: DatasetEntry) -> None:
        horizon = self._horizon(entry.dataset.name)
        for _ in range(STEPS_MAX):
            if self._stopping.is_set():
                break
            if not compact(self._storage, entry, horizon, self._settings.compaction):
                break
        self._expire(entry, horizon)

    def tidy_all(self) -> None:
        """Tidy datasets if something has changed or time has passed for retention."""
        if self._is_due():
            for entry in self._storage.definitions.all():
                if entry.dataset.is_static:
                    continue
                # For example a full disk, or a dataset that is being dropped: go on with others.
                with survive(log, "housekeeping failed", dataset=entry.dataset.name):
                    self._tidy(entry)
        self._storage.delete_dropped(grace_s=self._settings.grace_s)

    def _is_due(self) -> bool:
        changes, now_s = self._storage.changes, time.monotonic()
        if changes == self._changes and now_s < self._next_s:
            return False
        self._changes, self._next_s = changes, now_s + REST_S
        return True

    def _expire(self, entry: DatasetEntry, horizon: int) -> None:
        if entry.dataset.key is not None or self._settings.retention == Retention():
            return
        files = self._storage.files.of(entry.id)
        old = expired(files, self._settings.retention, horizon=horizon, now_s=self._storage.clock())
        if old:
            self._storage.replace(entry, old, [])

    def _run(self) -> None:
        while not self._stopping.wait(self._settings.interval_s):
            with survive(log, "housekeeping failed"):
                self.tidy_all()
