"""What has to be done to datasets now and then, by a thread: compaction, retention, deletion."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

import msgspec

from godwit.datacluster.compaction import CompactionSettings, compact
from godwit.datacluster.definitions import Known
from godwit.datacluster.retention import Retention, expired
from godwit.datacluster.storage import Storage

log = logging.getLogger("godwit.housekeeping")

#: Steps of compaction for one dataset before it is the next one's turn.
STEPS_MAX = 8


class HousekeepingSettings(msgspec.Struct, frozen=True):
    interval_s: float = 2.0
    grace_s: float = 600.0
    """How long a file that was replaced is kept for readers that did not say so."""

    compaction: CompactionSettings = CompactionSettings()
    retention: Mapping[str, Retention] = {}
    """By the name of the dataset; "" is for all others, but not for datasets with a key."""


class Housekeeping:
    """`horizon` tells, for a dataset, the batch after which some channel still wants each one."""

    def __init__(
        self, storage: Storage, horizon: Callable[[str], int], settings: HousekeepingSettings
    ) -> None:
        self._storage = storage
        self._horizon = horizon
        self._settings = settings
        self._retention = {name.lower(): each for name, each in settings.retention.items()}
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def keep(self, known: Known) -> int:
        """Do for a dataset what is to be done now; how many steps that took."""
        horizon = self._horizon(known.dataset.name)
        steps = 0
        while steps < STEPS_MAX and not self._stopping.is_set():
            if not compact(self._storage, known, horizon, self._settings.compaction):
                break
            steps += 1
        self._expire(known, horizon)
        return steps

    def keep_all(self) -> None:
        for known in self._storage.definitions.all():
            if known.dataset.is_static:
                continue
            try:
                self.keep(known)
            except Exception:
                # A full disk, or a dataset that is being dropped: the others go on.
                log.exception("housekeeping failed", extra={"dataset": known.dataset.name})
        self._storage.delete_dropped(grace_s=self._settings.grace_s)

    def _expire(self, known: Known, horizon: int) -> None:
        retention = self._retention.get(known.dataset.name.lower(), self._retention.get(""))
        if retention is None or known.dataset.key is not None:
            return
        now_s = time.time()
        files = self._storage.files.of(known.id)
        old = expired(files, retention, horizon=horizon, now_s=now_s)
        if old:
            self._storage.replace(known, old, [])

    def _run(self) -> None:
        while not self._stopping.wait(self._settings.interval_s):
            self.keep_all()
