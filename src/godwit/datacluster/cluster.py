"""A data cluster: datasets with their ingestion, channels with their scheduler.

    DatasetService --> Storage --> ChannelService <-- Scheduler
         `-- on_batch -------------------------------->'

Synchronous; may be called from any thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from godwit.datacluster.catalog import Catalog
from godwit.datacluster.channels.channel_service import ChannelService, ChannelSettings
from godwit.datacluster.channels.executions import Execution
from godwit.datacluster.channels.scheduler import Scheduler
from godwit.datacluster.datasets.dataset_service import DatasetService, DatasetSettings
from godwit.datacluster.datasets.housekeeping import HousekeepingSettings
from godwit.datacluster.datasets.ingestion import IngestionSettings
from godwit.datacluster.datasets.retention import Retention
from godwit.datacluster.datasets.storage import Storage
from godwit.datacluster.ddl.parsing import parse
from godwit.datacluster.ddl.statements import CreateChannel, DropChannel, DropDataset, Statement
from godwit.datacluster.log.feed_log import LogSettings
from godwit.datacluster.settings import DataClusterSettings
from godwit.errors import UsageError
from godwit.spark.supervised import SupervisedSpark


class Cluster:
    def __init__(
        self,
        spark: SupervisedSpark,
        settings: DataClusterSettings,
        *,
        on_results: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_results` is called from any thread when there is news for brokers."""
        folder = Path(settings.folder).resolve()
        self._keeps_history = settings.keeps_history
        self._catalog = Catalog(folder)
        self.storage = Storage(spark, self._catalog, folder)
        self.channels = ChannelService(
            spark,
            self._catalog,
            self.storage,
            folder,
            settings=ChannelSettings(offline_s=settings.offline_s, keep_s=settings.results_s),
            on_results=on_results,
        )
        self._scheduler = Scheduler(self.channels, at_once=settings.channels_at_once)
        self.datasets = DatasetService(
            self.storage,
            on_batch=self._scheduler.on_batch,
            horizon=self._horizon,
            settings=_dataset_settings(settings),
        )
        self._defining = threading.Lock()
        self._scheduler.start()

    def close(self) -> None:
        self._scheduler.stop()
        self.datasets.close()
        self.channels.close()
        self.storage.close()
        self._catalog.close()

    def execute(self, text: str) -> Statement:
        """Execute a CREATE or DROP statement; the statement as parsed."""
        with self._defining:
            statement = parse(text)
            if isinstance(statement, CreateChannel | DropChannel):
                self.channels.apply(statement, now_s=time.time())
                return statement
            if isinstance(statement, DropDataset):
                self._require_unread(statement.name)
            self.datasets.execute(statement)
            return statement

    def skip(self, channel: str) -> Execution | None:
        """Pass over the planned execution of a channel, if any, and schedule the next one."""
        skipped = self.channels.skip(channel, now_s=time.time())
        if skipped is not None:
            self._scheduler.on_skip(skipped.channel)
        return skipped

    def resume(self, channel: str) -> Execution | None:
        """Try the planned execution of a channel again that was stopped."""
        resumed = self.channels.resume(channel)
        if resumed is not None:
            self._scheduler.on_skip(resumed.channel)
        return resumed

    def _require_unread(self, dataset: str) -> None:
        reading = self.channels.reading(dataset)
        if reading:
            raise UsageError(f"dataset {dataset} is read by {', '.join(reading)}: drop that first")

    def _horizon(self, dataset: str) -> int:
        if self._keeps_history:
            return 0
        needed = self.channels.oldest_needed(dataset)
        return self.storage.last_batch(dataset) if needed is None else needed


def _dataset_settings(settings: DataClusterSettings) -> DatasetSettings:
    retention = Retention(settings.retention_s, settings.retention_bytes)
    return DatasetSettings(
        log=LogSettings(waiting_bytes_max=settings.waiting_bytes_max),
        ingestion=IngestionSettings(interval_s=settings.interval_s),
        housekeeping=HousekeepingSettings(retention=retention),
    )
