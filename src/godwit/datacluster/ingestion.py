"""From log to dataset: a structured-streaming query for each fed dataset, and who looks after them.

    log --> micro-batch --> files, written aside --> catalog --> on_batch

G1  A record of the log is in the dataset once, whatever is killed whenever.  Spark repeats a
    micro-batch that it does not know to be done.  The catalog knows the last one that is: by the
    id of the query, which is in its checkpoint, and Spark's number for the batch.
G2  Batches of a dataset are numbered 1, 2, 3 ... and never otherwise, even if a checkpoint is lost.
G3  A batch holds the positions that follow those of the batch before, without a gap.  A batch for
    which that is not so does not get in, and Spark begins anew behind what the dataset has.

A query that fails is started again, after a pause that grows; one that sees nothing new although
something waits is astray, too.  A quarantine rarely gets anything,
and a query that waits is not free: its query runs when there is something, up to the end, and ends.
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

from godwit.datacluster.dataset import BATCH
from godwit.datacluster.definitions import Known
from godwit.datacluster.files import Progress, StoredFile
from godwit.datacluster.frames import DamagedError
from godwit.datacluster.log import FeedLog
from godwit.datacluster.schemas import spark_schema
from godwit.datacluster.source import NAME, LogSource
from godwit.datacluster.storage import Storage
from godwit.datacluster.writing import write_files
from godwit.errors import UsageError

log = logging.getLogger("godwit.ingestion")

#: Told of the dataset's name and the batch that it has now.
OnBatch = Callable[[str, int], None]


class IngestionSettings(msgspec.Struct, frozen=True):
    interval_s: float = 0.25
    """Between the beginnings of micro-batches, at least."""

    rows_max: int = 100_000
    """Of a micro-batch, so that a backlog does not become one."""

    retry_s: float = 1.0
    retry_s_max: float = 30.0
    idle_s_max: float = 30.0
    """With something in the log that is not in the dataset."""


class AstrayError(DamagedError):
    """Spark did not go on where the dataset ends."""


class Trouble(msgspec.Struct, frozen=True):
    """A query that failed and has not succeeded since."""

    dataset: str
    reason: str
    failures: int
    since_s: float


class Stream:
    """The ingestion of one dataset: its query, and what is to be done when it ends."""

    def __init__(
        self,
        storage: Storage,
        known: Known,
        feed_log: FeedLog,
        on_batch: OnBatch,
        settings: IngestionSettings,
    ) -> None:
        self.known = known
        self.log = feed_log
        self.trouble: Trouble | None = None
        self._storage = storage
        self._on_batch = on_batch
        self._settings = settings
        self._query: StreamingQuery | None = None
        self._next_try_s = 0.0
        self._idle_since_s = 0.0
        self._has_ended = False
        self._cause: Exception | None = None
        self._lock = threading.Lock()
        self._ingesting = threading.Lock()

    def look_after(self, now_s: float) -> None:
        """Start it if it should run and does not."""
        with self._lock:
            if self._has_ended or self._runs_well(now_s):
                return
            failed = self._query.exception() if self._query is not None else None
            self._query = None
            if failed is not None:
                self._failed(str(self._cause or failed), now_s)
            is_wanted = self.known.quarantine_of is None or self._is_behind()
            if is_wanted and now_s >= self._next_try_s:
                try:
                    if isinstance(self._cause, AstrayError):
                        self._storage.folders.delete_checkpoint(self.known.id)
                    self._cause, self._idle_since_s = None, now_s
                    self._query = self._started()
                except Exception as error:  # noqa: BLE001  Whatever it is, it is tried again.
                    self._failed(str(error), now_s)

    def _runs_well(self, now_s: float) -> bool:
        query = self._query
        if query is None or not query.isActive:
            return False
        if not self.log.waiting_bytes or not query.status["message"].startswith("Waiting"):
            self._idle_since_s = now_s
        if now_s - self._idle_since_s < self._settings.idle_s_max:
            return True
        query.stop()
        self._query = None
        self._cause = AstrayError("records wait in the log, and Spark does not see them")
        self._failed(str(self._cause), now_s)
        return False

    def stop(self) -> None:
        """For good.  Spark does not wait for what it has called, so we do."""
        with self._lock:
            if self._query is not None:
                self._query.stop()
            self._has_ended = True
        with self._ingesting:
            pass

    def _is_behind(self) -> bool:
        return self.log.position > self._storage.files.progress(self.known.id).position

    def _failed(self, reason: str, now_s: float) -> None:
        before = self.trouble
        failures = before.failures + 1 if before is not None else 1
        since_s = before.since_s if before is not None else time.time()
        name = self.known.dataset.name
        self.trouble = Trouble(name, _first_lines(reason), failures, since_s)
        pause_s = self._settings.retry_s * 2 ** min(failures - 1, 16)
        self._next_try_s = now_s + min(pause_s, self._settings.retry_s_max)
        log.error("ingestion failed", extra={"dataset": name, "reason": reason})

    def _started(self) -> StreamingQuery:
        storage, settings = self._storage, self._settings
        spark = storage.spark
        records = (
            spark.readStream.format(NAME)
            .schema(spark_schema(self.known.dataset, with_batch=False))
            .option("folder", str(self.log.folder))
            .option("start", storage.files.progress(self.known.id).position)
            .option("rows_max", settings.rows_max)
            .option("tasks_max", spark.sparkContext.defaultParallelism)
            .load()
        )
        writer = (
            records.writeStream.queryName(f"{self.known.dataset.name}_{self.known.id}")
            .option("checkpointLocation", storage.folders.checkpoint(self.known.id).as_uri())
            .foreachBatch(self._ingest)
        )
        if self.known.quarantine_of is not None:
            return writer.trigger(availableNow=True).start()
        interval = f"{round(settings.interval_s * 1000)} milliseconds"
        return writer.trigger(processingTime=interval).start()

    def _ingest(self, records: DataFrame, query_batch: int) -> None:
        """Called by Spark with each micro-batch, perhaps once more after a crash."""
        with self._ingesting:
            if self._has_ended:  # To return would mean that the batch is done.
                raise UsageError(f"{self.known.dataset.name} is not ingested any more")
            try:
                self._ingest_once(records, query_batch)
            except Exception as error:
                self._cause = error  # Spark tells of its own troubles with it first.
                raise

    def _ingest_once(self, records: DataFrame, query_batch: int) -> None:
        storage, dataset = self._storage, self.known.id
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
            if last == before.position and query_batch:  # Spark's first batch may be of nothing.
                raise AstrayError("the log gave no records")
            after = Progress(batch, last, query, query_batch)
            storage.files.commit(dataset, before, after, files)
        self._done(after)

    def _done(self, progress: Progress) -> None:
        self.log.ingested(progress.position)
        self._idle_since_s = time.monotonic()
        self.trouble = None
        try:
            self._on_batch(self.known.dataset.name, progress.batch)
        except Exception:
            # The batch is in; what others make of it must not stop the next one.
            log.exception("on_batch failed", extra={"dataset": self.known.dataset.name})

    def _query_id(self) -> str:
        checkpoint = self._storage.folders.checkpoint(self.known.id)
        query_id: str = json.loads((checkpoint / "metadata").read_text())["id"]
        return query_id


class Ingestion:
    """All streams, looked after by a thread."""

    def __init__(
        self,
        storage: Storage,
        on_batch: OnBatch,
        settings: IngestionSettings | None = None,
    ) -> None:
        self._storage = storage
        self._on_batch = on_batch
        self._settings = settings or IngestionSettings()
        self._streams: dict[int, Stream] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        storage.spark.dataSource.register(LogSource)
        self._thread = threading.Thread(target=self._look_after, name="ingestion", daemon=True)
        self._thread.start()

    def add(self, known: Known, feed_log: FeedLog) -> None:
        """Ingest this dataset from now on."""
        feed_log.ingested(self._storage.files.progress(known.id).position)
        stream = Stream(self._storage, known, feed_log, self._on_batch, self._settings)
        with self._lock:
            self._streams[known.id] = stream
        _look_after(stream)

    def remove(self, known: Known) -> None:
        with self._lock:
            stream = self._streams.pop(known.id, None)
        if stream is not None:
            stream.stop()

    def troubles(self) -> list[Trouble]:
        return [stream.trouble for stream in self._all() if stream.trouble is not None]

    def stop(self) -> None:
        """What waits in the logs is ingested after the next start."""
        self._stopping.set()
        self._thread.join()
        for stream in self._all():
            self.remove(stream.known)

    def _all(self) -> list[Stream]:
        with self._lock:
            return list(self._streams.values())

    def _look_after(self) -> None:
        while not self._stopping.wait(0.2):
            for stream in self._all():
                _look_after(stream)


def _look_after(stream: Stream) -> None:
    try:
        stream.look_after(time.monotonic())
    except Exception:  # Whoever looks after them must not die of what nobody has thought of.
        dataset = stream.known.dataset.name
        log.exception("cannot look after ingestion", extra={"dataset": dataset})


def _last_position(before: int, files: Sequence[StoredFile]) -> int:
    """Of a batch, which must begin where the one before ended, and have no gap."""
    rows = sum(file.rows for file in files)
    last = max((file.last_position for file in files), default=before)
    if last - before != rows:
        raise AstrayError(f"the log gave {rows} records for the positions {before + 1} to {last}")
    return last


def _first_lines(text: str) -> str:
    return "\n".join(text.strip().splitlines()[:3])[:500]
