"""Everything on the way from a record that arrives to a dataset that has it, put together.

What the data cluster's service uses: statements, inboxes, loads, and what is in trouble.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from godwit.datacluster.definitions import Known
from godwit.datacluster.feed import Feed
from godwit.datacluster.housekeeping import Housekeeping, HousekeepingSettings
from godwit.datacluster.inbox import Inbox
from godwit.datacluster.ingestion import Ingestion, IngestionSettings, OnBatch, Trouble
from godwit.datacluster.loading import load
from godwit.datacluster.log import FeedLog, LogSettings
from godwit.datacluster.schemas import logged
from godwit.datacluster.statements import (
    CreateDataset,
    CreateFeed,
    DropDataset,
    DropFeed,
    Statement,
)
from godwit.datacluster.storage import Storage
from godwit.errors import UsageError


class LandingSettings(msgspec.Struct, frozen=True):
    log: LogSettings = LogSettings()
    ingestion: IngestionSettings = IngestionSettings()
    housekeeping: HousekeepingSettings = HousekeepingSettings()


class Landing:
    """May be used from several threads.

    `on_batch` is told of each batch that is stored, from a thread of Spark's, and must be quick.
    `horizon` tells which batches of a dataset no channel will ask for one by one any more: those up
    to it.  Without channels, `Storage.last_batch` is the answer.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        on_batch: OnBatch,
        horizon: Callable[[str], int],
        settings: LandingSettings | None = None,
    ) -> None:
        self._storage = storage
        self._settings = settings or LandingSettings()
        self._lock = threading.Lock()
        self._inboxes: dict[str, Inbox] = {}
        self._logs: dict[int, FeedLog] = {}
        self._ingestion = Ingestion(storage, on_batch, self._settings.ingestion)
        self._housekeeping = Housekeeping(storage, horizon, self._settings.housekeeping)
        self._open(storage.definitions.all())
        self._housekeeping.start()

    def execute(self, statement: Statement) -> None:
        """A dataset or feed is made or dropped; whether a channel needs it, others must know."""
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
        """Of a dataset that is fed."""
        known = self._storage.definitions.known(name)
        inbox = self._inboxes.get(known.dataset.name)
        if inbox is None:
            raise UsageError(f"dataset {known.dataset.name} does not take records")
        return inbox

    def load(self, name: str, path: Path) -> int:
        """A file becomes the content of a static dataset; how many records there are."""
        with self._lock:
            return load(self._storage, name, path)

    def feeds(self) -> list[Feed]:
        return self._storage.definitions.feeds()

    def troubles(self) -> list[Trouble]:
        return self._ingestion.troubles()

    def close(self) -> None:
        """What waits in the logs is ingested after the next start."""
        self._housekeeping.stop()
        self._ingestion.stop()
        with self._lock:
            for log in self._logs.values():
                log.close()
            self._logs.clear()
            self._inboxes.clear()

    def _open(self, datasets: list[Known]) -> None:
        quarantines = {known.quarantine_of: known for known in datasets}
        for known in datasets:
            if known.dataset.is_static or known.quarantine_of is not None:
                continue
            quarantine = quarantines[known.id]
            log, quarantine_log = self._log(known), self._log(quarantine)
            inbox = Inbox(known.dataset, log, quarantine.dataset, quarantine_log)
            self._inboxes[known.dataset.name] = inbox
            self._ingestion.add(known, log)
            self._ingestion.add(quarantine, quarantine_log)

    def _log(self, known: Known) -> FeedLog:
        folder = self._storage.folders.log(known.id)
        log = FeedLog(folder, logged(known.dataset), self._settings.log)
        log.start_after(self._storage.files.progress(known.id).position)
        self._logs[known.id] = log
        return log

    def _forget(self, datasets: list[Known]) -> None:
        for known in datasets:
            self._inboxes.pop(known.dataset.name, None)
            self._ingestion.remove(known)
            log = self._logs.pop(known.id, None)
            if log is not None:
                log.close()
            self._storage.forget(known)
