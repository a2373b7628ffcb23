"""A data cluster, put together: datasets and what lands in them, channels and when they run.

    Landing --> Storage --> Channels <-- Scheduler
         `-- on_batch ------------------>'

Synchronous, for any thread; the server lends it threads.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from godwit.datacluster.brokers import BrokersDesk
from godwit.datacluster.catalog import Catalog
from godwit.datacluster.channel_statements import ChannelStatement, parse_channel_statement
from godwit.datacluster.channels import Channels, ChannelSettings
from godwit.datacluster.housekeeping import HousekeepingSettings
from godwit.datacluster.ingestion import IngestionSettings
from godwit.datacluster.landing import Landing, LandingSettings
from godwit.datacluster.log import LogSettings
from godwit.datacluster.retention import Retention
from godwit.datacluster.scheduler import Scheduler
from godwit.datacluster.settings import DataClusterSettings
from godwit.datacluster.statements import DropDataset, Statement, parse
from godwit.datacluster.storage import Storage
from godwit.errors import UsageError

_ABOUT_A_CHANNEL = re.compile(r"\s*(create|drop)\s+channel\b", re.IGNORECASE)
COMMITTED = "committed"


class Cluster:
    def __init__(
        self,
        spark: SparkSession,
        settings: DataClusterSettings,
        *,
        on_results: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_results` is told, from some thread, that an execution is done."""
        folder = Path(settings.folder).resolve()
        self._on_results = on_results
        self._keeps_history = settings.keeps_history
        self._catalog = Catalog(folder)
        self.storage = Storage(spark, self._catalog, folder)
        self.channels = Channels(
            spark,
            self._catalog,
            self.storage,
            folder,
            settings=ChannelSettings(offline_s=settings.offline_s, keep_s=settings.results_s),
            step=self._on_step,
        )
        self.brokers = BrokersDesk(self.channels)
        self._scheduler = Scheduler(self.channels)
        self.landing = Landing(
            self.storage,
            on_batch=self._scheduler.on_batch,
            horizon=self._horizon,
            settings=_landing_settings(settings),
        )
        self._defining = threading.Lock()
        self._scheduler.start()

    def close(self) -> None:
        self._scheduler.stop()
        self.landing.close()
        self.channels.close()
        self.storage.close()
        self._catalog.close()

    def execute(self, text: str) -> Statement | ChannelStatement:
        """Make or drop something.  The answer is what the text said."""
        with self._defining:
            if _ABOUT_A_CHANNEL.match(text):
                channel_statement = parse_channel_statement(text)
                self.channels.apply(channel_statement, now_s=time.time())
                return channel_statement
            statement = parse(text)
            if isinstance(statement, DropDataset):
                self._require_unread(statement.name)
            self.landing.execute(statement)
            return statement

    def _require_unread(self, dataset: str) -> None:
        reading = self.channels.reading(dataset)
        if reading:
            raise UsageError(f"dataset {dataset} is read by {', '.join(reading)}: drop that first")

    def _horizon(self, dataset: str) -> int:
        if self._keeps_history:
            return 0
        needed = self.channels.oldest_needed(dataset)
        return self.storage.last_batch(dataset) if needed is None else needed

    def _on_step(self, step: str) -> None:
        if step == COMMITTED:
            self._on_results()


def _landing_settings(settings: DataClusterSettings) -> LandingSettings:
    retention = {}
    if settings.retention_s is not None or settings.retention_bytes is not None:
        retention[""] = Retention(settings.retention_s, settings.retention_bytes)
    return LandingSettings(
        log=LogSettings(waiting_bytes_max=settings.waiting_bytes_max),
        ingestion=IngestionSettings(interval_s=settings.interval_s),
        housekeeping=HousekeepingSettings(retention=retention),
    )
