"""A data cluster: datasets with their ingestion, channels with their scheduler.

    DatasetService --> Storage --> ChannelService <-- Scheduler
         `-- on_batch -------------------------------->'

Synchronous; may be called from any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from godwit.datacluster.catalog import Catalog
from godwit.datacluster.channels import channel_tables
from godwit.datacluster.channels.channel_service import ChannelService, ChannelSettings
from godwit.datacluster.channels.executions import Execution
from godwit.datacluster.channels.result_writing import ResultBudget
from godwit.datacluster.channels.scheduler import Scheduler
from godwit.datacluster.datasets.dataset_service import DatasetService, DatasetSettings
from godwit.datacluster.datasets.files import Files
from godwit.datacluster.datasets.housekeeping import HousekeepingSettings
from godwit.datacluster.datasets.ingestion import IngestionSettings
from godwit.datacluster.datasets.retention import Retention
from godwit.datacluster.datasets.storage import Storage
from godwit.datacluster.ddl.parsing import parse
from godwit.datacluster.ddl.statements import CreateChannel, DropChannel, DropDataset, Statement
from godwit.datacluster.lease import Lease
from godwit.datacluster.log.feed_log import LogSettings
from godwit.datacluster.settings import DataClusterSettings
from godwit.datacluster.steady_clock import SteadyClock
from godwit.errors import UsageError
from godwit.spark.supervised import SupervisedSpark


class Cluster:
    def __init__(
        self,
        spark: SupervisedSpark,
        settings: DataClusterSettings,
        *,
        lease: Lease | None = None,
        on_results: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_results` is called from any thread when there is news for brokers.

        With a `lease`, nothing is changed or acknowledged after another process has taken it.
        """
        folder = Path(settings.folder).resolve()
        self._keeps_history = settings.keeps_history
        self._catalog = Catalog(folder, epoch=None if lease is None else lease.epoch)
        Files(self._catalog)
        channel_tables.define(self._catalog)
        self.clock = SteadyClock(last_known_s(self._catalog))
        self.storage = Storage(spark, self._catalog, folder, clock=self.clock)
        self.channels = ChannelService(
            spark,
            self._catalog,
            self.storage,
            folder,
            settings=_channel_settings(settings),
            on_results=on_results,
        )
        self._scheduler = Scheduler(
            self.channels, at_once=settings.channels_at_once, clock=self.clock
        )
        self._needed: tuple[int, dict[str, int]] = (-1, {})
        """Batches that channels have still to read, and the change of the catalog before."""
        self.datasets = DatasetService(
            self.storage,
            on_batch=self._scheduler.on_batch,
            horizon=self._horizon,
            settings=_dataset_settings(settings),
            check_lease=(lambda: None) if lease is None else lease.check,
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
                self.channels.apply(statement, now_s=self.clock())
                return statement
            if isinstance(statement, DropDataset):
                self._require_unread(statement.name)
            self.datasets.execute(statement)
            return statement

    def skip(self, channel: str) -> Execution | None:
        """Pass over the planned execution of a channel, if any, and schedule the next one."""
        skipped = self.channels.skip(channel, now_s=self.clock())
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
        changes = self._catalog.changes
        if self._needed[0] != changes:  # One look for all datasets.
            self._needed = (changes, self.channels.oldest_needed())
        needed = self._needed[1].get(dataset.lower())
        return self.storage.last_batch(dataset) if needed is None else needed


def last_known_s(catalog: Catalog) -> float:
    """The latest time in the catalog."""
    with catalog.transaction() as connection:
        row = connection.execute(
            """SELECT max(
                (SELECT coalesce(max(max(moment_s, coalesce(done_s, 0))), 0) FROM executions),
                (SELECT coalesce(max(max(newest_s, coalesce(dropped_s, 0))), 0) FROM files),
                (SELECT coalesce(max(created_s), 0) FROM channels),
                (SELECT coalesce(max(released_s), 0) FROM holds)
            )"""
        ).fetchone()
    return float(row[0])


def _channel_settings(settings: DataClusterSettings) -> ChannelSettings:
    return ChannelSettings(
        offline_s=settings.offline_s,
        keep_s=settings.results_s,
        budget=ResultBudget(settings.execution_rows_max, settings.execution_bytes_max),
    )


def _dataset_settings(settings: DataClusterSettings) -> DatasetSettings:
    retention = Retention(settings.retention_s, settings.retention_bytes)
    return DatasetSettings(
        log=LogSettings(waiting_bytes_max=settings.waiting_bytes_max),
        ingestion=IngestionSettings(interval_s=settings.interval_s),
        housekeeping=HousekeepingSettings(retention=retention),
    )
