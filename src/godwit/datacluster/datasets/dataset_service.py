"""The datasets of a data cluster behind one door: statements, inboxes, loads, troubles.

It owns the logs, the inboxes, the ingestion and the housekeeping of all datasets.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from godwit.datacluster.datasets.definitions import DatasetEntry
from godwit.datacluster.datasets.housekeeping import Housekeeping, HousekeepingSettings
from godwit.datacluster.datasets.inbox import Inbox
from godwit.datacluster.datasets.ingestion import (
    Ingestion,
    IngestionSettings,
    IngestionTrouble,
    OnBatch,
)
from godwit.datacluster.datasets.loading import load
from godwit.datacluster.datasets.storage import Storage
from godwit.datacluster.ddl.statements import (
    CreateDataset,
    CreateFeed,
    DatasetStatement,
    DropDataset,
    DropFeed,
)
from godwit.datacluster.log.feed_log import FeedLog, LogSettings
from godwit.datacluster.model.feed import Feed
from godwit.datacluster.model.schemas import logged
from godwit.errors import UsageError


class DatasetSettings(msgspec.Struct, frozen=True):
    log: LogSettings = LogSettings()
    ingestion: IngestionSettings = IngestionSettings()
    housekeeping: HousekeepingSettings = HousekeepingSettings()


class DatasetService:
    """May be used from several threads.

    `on_batch` is called for each batch that is stored, by a thread of Spark's, and must be quick.
    `horizon` returns, for a dataset, the batch up to which no channel will read batches one by one
    any more.  Without channels, that is `Storage.last_batch`.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        on_batch: OnBatch,
        horizon: Callable[[str], int],
        settings: DatasetSettings | None = None,
        check_lease: Callable[[], None] = lambda: None,
    ) -> None:
        self._storage = storage
        self._settings = settings or DatasetSettings()
        self._check_lease = check_lease
        self._lock = threading.Lock()
        self._inboxes: dict[str, Inbox] = {}
        self._logs: dict[int, FeedLog] = {}
        self._ingestion = Ingestion(storage, on_batch, self._settings.ingestion)
        self._housekeeping = Housekeeping(storage, horizon, self._settings.housekeeping)
        self._open(storage.definitions.all())
        self._housekeeping.start()

    def execute(self, statement: DatasetStatement) -> None:
        """Create or drop a dataset or feed.  The caller checks that no channel reads it."""
        with self._lock:
            changed = self._storage.definitions.apply(statement)
            match statement:
                case CreateDataset(dataset):
                    try:
                        self._open(changed)
                    except BaseException:  # For example, the disk is full.
                        self._forget(self._storage.definitions.apply(DropDataset(dataset.name)))
                        raise
                case DropDataset():
                    self._forget(changed)
                case CreateFeed() | DropFeed():
                    pass

    def inbox(self, name: str) -> Inbox:
        """The inbox of a dataset that is fed."""
        entry = self._storage.definitions.entry(name)
        inbox = self._inboxes.get(entry.dataset.name)
        if inbox is None:
            raise UsageError(f"dataset {entry.dataset.name} does not take records")
        return inbox

    def load(self, name: str, path: Path) -> int:
        """Load a static dataset from a file; the number of its records."""
        with self._lock:
            return load(self._storage, name, path)

    def feeds(self) -> list[Feed]:
        return self._storage.definitions.feeds()

    def troubles(self) -> list[IngestionTrouble]:
        return self._ingestion.troubles()

    def close(self) -> None:
        """Records that wait in the logs are ingested after the next start."""
        self._housekeeping.stop()
        self._ingestion.stop()
        with self._lock:
            for log in self._logs.values():
                log.close()
            self._logs.clear()
            self._inboxes.clear()

    def _open(self, datasets: list[DatasetEntry]) -> None:
        quarantines = {entry.quarantine_of: entry for entry in datasets}
        for entry in datasets:
            if entry.dataset.is_static or entry.quarantine_of is not None:
                continue
            quarantine = quarantines[entry.id]
            log, quarantine_log = self._log(entry), self._log(quarantine)
            inbox = Inbox(
                entry.dataset,
                log,
                quarantine.dataset,
                quarantine_log,
                check_lease=self._check_lease,
            )
            self._inboxes[entry.dataset.name] = inbox
            self._ingestion.add(entry, log)
            self._ingestion.add(quarantine, quarantine_log)

    def _log(self, entry: DatasetEntry) -> FeedLog:
        folder = self._storage.folders.log(entry.id)
        log = FeedLog(folder, logged(entry.dataset), self._settings.log)
        log.start_after(self._storage.files.progress(entry.id).position)
        self._logs[entry.id] = log
        return log

    def _forget(self, datasets: list[DatasetEntry]) -> None:
        for entry in datasets:
            self._inboxes.pop(entry.dataset.name, None)
            self._ingestion.remove(entry)
            log = self._logs.pop(entry.id, None)
            if log is not None:
                log.close()
            self._storage.forget(entry)
