"""Stored datasets as data frames: all records up to a batch, or those of some batches.

A dataset with a key gives the latest record of each key.  It is found in two steps, so that the
cost does not grow with the history: a *base*, made by compaction, has one record for each key and
is cached in memory; the few later records replace those of the same key.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  The usual name.

from godwit.datacluster.catalog import Catalog
from godwit.datacluster.datasets.definitions import DatasetEntry, Definitions
from godwit.datacluster.datasets.files import Files, StoredFile
from godwit.datacluster.datasets.folders import Folders
from godwit.datacluster.datasets.readers import Readers
from godwit.datacluster.disk import locked
from godwit.datacluster.model.dataset import BATCH, POSITION, Dataset
from godwit.datacluster.model.schemas import spark_schema
from godwit.datacluster.steady_clock import SteadyClock
from godwit.errors import UsageError
from godwit.spark.supervised import SupervisedSpark

#: A base with more rows is not cached.
CACHED_ROWS_MAX = 2_000_000


class Storage:
    """Implements `channels.snapshots.Snapshots`.  May be used from several threads."""

    def __init__(
        self,
        spark: SupervisedSpark,
        catalog: Catalog,
        root: Path,
        *,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.supervised = spark
        self.clock = clock or SteadyClock()
        self._catalog = catalog
        self.folders = Folders(root)
        # Before the sweep, which would delete files that another process is writing.
        self._folder_lock = locked(self.folders.root)
        self.definitions = Definitions(catalog)
        self.files = Files(catalog)
        self.readers = Readers()
        self._bases: dict[int, tuple[tuple[str, ...], DataFrame]] = {}
        self._lock = threading.Lock()
        spark.prepare(self._prepare)
        self._delete_leftovers()

    @property
    def spark(self) -> SparkSession:
        return self.supervised.session

    def _prepare(self, spark: SparkSession) -> None:
        # So that pyarrow and Spark read each other's files.
        spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        # By default Spark starts a job to list more than 32 files.
        spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.threshold", "1000")
        self._bases.clear()  # Those of a session that has died.

    @property
    def changes(self) -> int:
        """Rises with every change of the catalog."""
        return self._catalog.changes

    def dataset(self, name: str) -> Dataset:
        return self.definitions.entry(name).dataset

    def last_batch(self, name: str) -> int:
        return self.files.progress(self.definitions.entry(name).id).batch

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Files of frames that are made inside are not deleted before the end."""
        with self.readers.reading(self.clock()):
            yield

    def frame(self, name: str, *, through: int) -> DataFrame:
        entry = self.definitions.entry(name)
        files = self.files.of(entry.id)
        later = [file for file in files if not file.is_base and file.first_batch <= through]
        if entry.dataset.key is None:
            return self._read(entry.dataset, later, after=-1, through=through)
        base = [file for file in files if file.is_base]
        if any(file.last_batch > through for file in base):
            raise UsageError(
                f"dataset {entry.dataset.name}: its state at batch {through} is not kept any more,"
                " only later ones"
            )
        deltas = latest(self._read(entry.dataset, later, after=-1, through=through), entry.dataset)
        if not base:
            return deltas
        before = self._base(entry, base)
        if not later:
            return before
        keys = deltas.select(entry.dataset.key)
        return before.join(keys, entry.dataset.key, "left_anti").unionByName(deltas)

    def new(self, name: str, *, after: int, through: int) -> DataFrame:
        entry = self.definitions.entry(name)
        files = [
            file
            for file in self.files.of(entry.id)
            if file.last_batch > after and file.first_batch <= through
        ]
        if any(file.is_base for file in files):
            raise UsageError(
                f"dataset {entry.dataset.name}: records after batch {after} are no longer all kept"
            )
        return self._read(entry.dataset, files, after=after, through=through)

    def replace(
        self, entry: DatasetEntry, old: Sequence[StoredFile], new: Sequence[StoredFile]
    ) -> bool:
        """Replace files; the old ones are deleted when they have no reader.

        False if the old ones do not count any more: the dataset was dropped.
        """
        with self.discarding(new):
            return self.files.replace(entry.id, old, new, now_s=self.clock())

    @contextmanager
    def discarding(self, files: Sequence[StoredFile]) -> Iterator[None]:
        """Delete the files at the end unless the catalog names them by then."""
        try:
            yield
        finally:
            named = self.files.all_paths()
            self.folders.delete([file.path for file in files if file.path not in named])

    def forget(self, entry: DatasetEntry) -> None:
        """Delete a dropped dataset.  Its log must be closed and its ingestion stopped."""
        self.files.drop_all(entry.id, now_s=self.clock())
        self.folders.delete_dataset(entry.id)
        self._uncache(entry.id)

    def delete_dropped(self, *, grace_s: float) -> int:
        """Delete dropped files without a reader; how many."""
        before_s = self.readers.safe_before_s(self.clock() - grace_s)
        paths = self.files.dropped(before_s=before_s)
        self.folders.delete(paths)
        self.files.forget(paths)
        return len(paths)

    def close(self) -> None:
        with self._lock:
            datasets = list(self._bases)
        for dataset in datasets:
            self._uncache(dataset)
        os.close(self._folder_lock)

    def _delete_leftovers(self) -> None:
        """At the start there are no readers and writers."""
        self.delete_dropped(grace_s=0.0)
        self.folders.sweep(self.files.all_paths())

    def _read(
        self, dataset: Dataset, files: Sequence[StoredFile], *, after: int, through: int
    ) -> DataFrame:
        schema = spark_schema(dataset)
        if not files:
            return self.spark.createDataFrame([], schema)
        frame = self.spark.read.schema(schema).parquet(*(self.folders.uri(f) for f in files))
        if any(file.first_batch <= after or file.last_batch > through for file in files):
            frame = frame.where(F.col(BATCH).between(after + 1, through))
        return frame

    def _base(self, entry: DatasetEntry, files: Sequence[StoredFile]) -> DataFrame:
        """The base, cached until compaction replaces it."""
        paths = tuple(file.path for file in files)
        with self._lock:
            cached = self._bases.get(entry.id)
            if cached is not None and cached[0] == paths:
                return cached[1]
            last_batch = max(file.last_batch for file in files)
            frame = self._read(entry.dataset, files, after=-1, through=last_batch)
            if sum(file.rows for file in files) > CACHED_ROWS_MAX:
                return frame
            self._bases[entry.id] = paths, frame.persist()
        if cached is not None:
            cached[1].unpersist()
        return frame

    def _uncache(self, dataset: int) -> None:
        with self._lock:
            cached = self._bases.pop(dataset, None)
        if cached is not None:
            cached[1].unpersist()


def latest(records: DataFrame, dataset: Dataset) -> DataFrame:
    """The record with the highest position of each key."""
    assert dataset.key is not None
    last = F.max_by(F.struct(*records.columns), F.col(POSITION)).alias("last")
    return records.groupBy(F.col(dataset.key).alias("key")).agg(last).select("last.*")
