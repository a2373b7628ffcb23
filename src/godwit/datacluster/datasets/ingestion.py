"""From log to dataset: a supervised structured-streaming query for each fed dataset.

    log --> micro-batch --> files, written aside --> catalog --> on_batch

G1  A record of the log is in the dataset once, whatever process is killed at whatever time.  Spark
    repeats a micro-batch unless its checkpoint has the commit.  The catalog stores the last
    micro-batch that is done: the id of the query, which is in its checkpoint, and Spark's number
    of the batch.
G2  Batches of a dataset are numbered 1, 2, 3 ... without gaps, even if a checkpoint is lost.
G3  A batch holds the positions that follow those of the batch before, without a gap.  Any other
    batch is refused, and Spark restarts from the last position that the dataset has.

A query that fails is restarted with a back-off; so is one that reads nothing although records wait.
An idle query costs a Python process and processor time: it starts when records wait, and ends when
none have come for a while.  A quarantine rarely gets records: its query ends after the last.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Sequence

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from godwit.datacluster.datasets.definitions import DatasetEntry
from godwit.datacluster.datasets.files import IngestProgress, StoredFile
from godwit.datacluster.datasets.storage import Storage
from godwit.datacluster.datasets.writing import write_files
from godwit.datacluster.log.feed_log import FeedLog
from godwit.datacluster.log.log_frames import DamagedError
from godwit.datacluster.log.log_source import NAME, LogSource
from godwit.datacluster.model.dataset import BATCH
from godwit.datacluster.model.schemas import spark_schema
from godwit.errors import UsageError
from godwit.protocol.backoff import backoff_s
from godwit.protocol.supervision import survive

log = logging.getLogger("godwit.ingestion")

#: Called with the name of a dataset and its last batch.
OnBatch = Callable[[str, int], None]


class IngestionSettings(msgspec.Struct, frozen=True):
    interval_s: float = 0.25
    """Minimum time between the starts of micro-batches."""

    rows_max: int = 100_000
    """Limit of a micro-batch, so that a backlog becomes several."""

    retry_s: float = 1.0
    retry_s_max: float = 30.0
    sleep_s: float = 60.0
    """A query ends when no records have come for this time; the next record starts it again."""

    idle_s_max: float = 30.0
    """Limit of the time without progress while records wait in the log."""


class CheckpointError(DamagedError):
    """Spark's checkpoint does not continue where the dataset ends."""


class IngestionTrouble(msgspec.Struct, frozen=True):
    """A query that failed and has not succeeded since."""

    dataset: str
    reason: str
    failures: int
    since_s: float


class IngestionQuery:
    """The ingestion of one dataset: its query, restarted when it fails."""

    def __init__(
        self,
        storage: Storage,
        entry: DatasetEntry,
        feed_log: FeedLog,
        on_batch: OnBatch,
        settings: IngestionSettings,
    ) -> None:
        self.entry = entry
        self.log = feed_log
        self.trouble: IngestionTrouble | None = None
        self._storage = storage
        self._on_batch = on_batch
        self._settings = settings
        self._query: StreamingQuery | None = None
        self._generation = 0
        """Of the Spark session that runs the query."""
        self._next_try_s = 0.0
        self._idle_since_s = 0.0
        self._fed_s = 0.0
        """When records waited last."""
        self._has_ended = False
        self._cause: Exception | None = None
        self._lock = threading.Lock()
        self._ingesting = threading.Lock()

    def supervise(self, now_s: float) -> None:
        """Start the query if it should run and does not."""
        with self._lock:
            if self._has_ended or self._is_running(now_s):
                return
            failure = self._failure()
            self._query = None
            if failure is not None:
                self._failed(failure, now_s)
            if self.log.waiting_bytes and now_s >= self._next_try_s:
                try:
                    if not self._is_checkpoint_usable():
                        self._storage.folders.delete_checkpoint(self.entry.id)
                    self._cause, self._idle_since_s, self._fed_s = None, now_s, now_s
                    self._generation = self._storage.supervised.generation
                    self._query = self._started()
                except Exception as error:  # noqa: BLE001  Any failure is retried.
                    self._failed(str(error), now_s)

    def _failure(self) -> str | None:
        """Why the last query has ended; None if it has not failed."""
        if self._query is None:
            return None
        if not self._storage.supervised.is_current(self._generation):
            return "Spark's Java process has died"
        failed = self._query.exception()
        return None if failed is None else str(self._cause or failed)

    def _is_running(self, now_s: float) -> bool:
        query = self._query
        if query is None or not self._storage.supervised.is_current(self._generation):
            return False
        if not query.isActive:
            return False
        if not self.log.waiting_bytes or not query.status["message"].startswith("Waiting"):
            self._idle_since_s = now_s
        if self.log.waiting_bytes:
            self._fed_s = now_s
        elif now_s - self._fed_s >= self._settings.sleep_s:
            self._stop_query(query)
            return False
        if now_s - self._idle_since_s < self._settings.idle_s_max:
            return True
        self._stop_query(query)
        self._cause = CheckpointError("records wait in the log, but Spark does not read them")
        self._failed(str(self._cause), now_s)
        return False

    def _stop_query(self, query: StreamingQuery) -> None:
        query.stop()
        self._query = None

    @property
    def is_asleep(self) -> bool:
        return self._query is None

    def stop(self) -> None:
        """Stop for good.  Waits for a running micro-batch, which Spark does not."""
        with self._lock:
            if self._query is not None and self._storage.supervised.is_current(self._generation):
                self._query.stop()
            self._has_ended = True
        with self._ingesting:
            pass

    def _is_checkpoint_usable(self) -> bool:
        """False if Spark may refuse it, as after a query that was stopped while it started.

        Deleting a checkpoint is always safe, because the catalog knows what the dataset has (G1).
        """
        if self.trouble is not None and (
            self._cause is None or isinstance(self._cause, CheckpointError)
        ):
            return False  # Spark failed by itself, or is not where the dataset ends.
        return (self._storage.folders.checkpoint(self.entry.id) / "metadata").is_file()

    def _failed(self, reason: str, now_s: float) -> None:
        before = self.trouble
        failures = before.failures + 1 if before is not None else 1
        since_s = before.since_s if before is not None else self._storage.clock()
        name = self.entry.dataset.name
        self.trouble = IngestionTrouble(name, _first_lines(reason), failures, since_s)
        retry_s, retry_s_max = self._settings.retry_s, self._settings.retry_s_max
        self._next_try_s = now_s + backoff_s(failures, first_s=retry_s, max_s=retry_s_max)
        log.error("ingestion failed", extra={"dataset": name, "reason": reason})

    def _started(self) -> StreamingQuery:
        storage, settings = self._storage, self._settings
        spark = storage.spark
        records = (
            spark.readStream.format(NAME)
            .schema(spark_schema(self.entry.dataset, with_batch=False))
            .option("folder", str(self.log.folder))
            .option("start", storage.files.progress(self.entry.id).position)
            .option("rows_max", settings.rows_max)
            .option("tasks_max", spark.sparkContext.defaultParallelism)
            .load()
        )
        writer = (
            records.writeStream.queryName(f"{self.entry.dataset.name}_{self.entry.id}")
            .option("checkpointLocation", storage.folders.checkpoint(self.entry.id).as_uri())
            .foreachBatch(self._ingest)
        )
        if self.entry.quarantine_of is not None:
            return writer.trigger(availableNow=True).start()
        interval = f"{round(settings.interval_s * 1000)} milliseconds"
        return writer.trigger(processingTime=interval).start()

    def _ingest(self, records: DataFrame, query_batch: int) -> None:
        """Called by Spark with each micro-batch, perhaps again after a crash."""
        with self._ingesting:
            if self._has_ended:  # Spark takes a return as success.
                raise UsageError(f"ingestion of {self.entry.dataset.name} has stopped")
            try:
                self._ingest_once(records, query_batch)
            except Exception as error:
                self._cause = error  # Spark reports it wrapped in errors of its own.
                raise

    def _ingest_once(self, records: DataFrame, query_batch: int) -> None:
        storage, dataset = self._storage, self.entry.id
        query = self._query_id()
        before = storage.files.progress(dataset)
        if before.query == query and before.query_batch >= query_batch:
            self._done(before)
            return
        batch = before.batch + 1
        with storage.folders.staging() as staged:
            write_files(records.withColumn(BATCH, F.lit(batch).cast("bigint")), staged)
            files = storage.folders.publish(dataset, staged)
        with storage.discarding(files):
            last = _last_position(before.position, files)
            if last == before.position and query_batch:  # Spark's first batch may be empty.
                raise CheckpointError("Spark read no records from the log")
            after = IngestProgress(batch, last, query, query_batch)
            storage.files.commit(dataset, before, after, files)
        self._done(after)

    def _done(self, progress: IngestProgress) -> None:
        self.log.ingested(progress.position)
        self._idle_since_s = time.monotonic()
        self.trouble = None
        # The batch is stored: an error of the callback must not stop ingestion.
        with survive(log, "on_batch failed", dataset=self.entry.dataset.name):
            self._on_batch(self.entry.dataset.name, progress.batch)

    def _query_id(self) -> str:
        checkpoint = self._storage.folders.checkpoint(self.entry.id)
        query_id: str = json.loads((checkpoint / "metadata").read_text())["id"]
        return query_id


class Ingestion:
    """The queries of all datasets, supervised by a thread."""

    def __init__(
        self,
        storage: Storage,
        on_batch: OnBatch,
        settings: IngestionSettings | None = None,
    ) -> None:
        self._storage = storage
        self._on_batch = on_batch
        self._settings = settings or IngestionSettings()
        self._queries: dict[int, IngestionQuery] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        storage.supervised.prepare(lambda spark: spark.dataSource.register(LogSource))
        self._thread = threading.Thread(target=self._supervise_all, name="ingestion", daemon=True)
        self._thread.start()

    def add(self, entry: DatasetEntry, feed_log: FeedLog) -> None:
        """Start to ingest a dataset."""
        feed_log.ingested(self._storage.files.progress(entry.id).position)
        query = IngestionQuery(self._storage, entry, feed_log, self._on_batch, self._settings)
        with self._lock:
            self._queries[entry.id] = query
        _supervise(query)

    def remove(self, entry: DatasetEntry) -> None:
        with self._lock:
            query = self._queries.pop(entry.id, None)
        if query is not None:
            query.stop()

    def troubles(self) -> list[IngestionTrouble]:
        return [query.trouble for query in self._all() if query.trouble is not None]

    def stop(self) -> None:
        """Records that wait in the logs are ingested after the next start."""
        self._stopping.set()
        self._thread.join()
        for query in self._all():
            self.remove(query.entry)

    def _all(self) -> list[IngestionQuery]:
        with self._lock:
            return list(self._queries.values())

    def _supervise_all(self) -> None:
        while not self._stopping.wait(0.2):
            for query in self._all():
                _supervise(query)


def _supervise(query: IngestionQuery) -> None:
    with survive(log, "supervision of ingestion failed", dataset=query.entry.dataset.name):
        query.supervise(time.monotonic())


def _last_position(before: int, files: Sequence[StoredFile]) -> int:
    """The last position of a batch, which must follow the one before without a gap (G3)."""
    rows = sum(file.rows for file in files)
    last = max((file.last_position for file in files), default=before)
    if last - before != rows:
        raise CheckpointError(f"Spark read {rows} records for the positions {before + 1} to {last}")
    return last


def _first_lines(text: str) -> str:
    return "\n".join(text.strip().splitlines()[:3])[:500]
