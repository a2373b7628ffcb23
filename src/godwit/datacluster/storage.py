"""Stored datasets, as channels see them: all records up to a batch, or those of some batches.

Of a dataset with a key, the latest record of each key counts.  It is found in two steps, so that
it stays cheap as history grows: a *base*, which compaction makes, holds one record for each key and
is kept in memory; what came after it is little, and takes its place.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  As everybody calls it.

from godwit.datacluster.catalog import Catalog
from godwit.datacluster.dataset import BATCH, POSITION, Dataset
from godwit.datacluster.definitions import Definitions, Known
from godwit.datacluster.files import Files, StoredFile
from godwit.datacluster.folders import Folders
from godwit.datacluster.readers import Readers
from godwit.datacluster.schemas import spark_schema
from godwit.datacluster.segments import locked
from godwit.errors import UsageError

#: A base of more rows is read from its file each time.
CACHED_ROWS_MAX = 2_000_000


class Storage:
    """Implements `Snapshots`.  May be used from several threads."""

    def __init__(self, spark: SparkSession, catalog: Catalog, root: Path) -> None:
        self.spark = spark
        self.folders = Folders(root)
        # Before anything is swept: what nobody names yet may be somebody's work of this moment.
        self._folder_lock = locked(self.folders.root)
        self.definitions = Definitions(catalog)
        self.files = Files(catalog)
        self.readers = Readers()
        self._bases: dict[int, tuple[tuple[str, ...], DataFrame]] = {}
        self._lock = threading.Lock()
        # pyarrow reads what Spark writes, and the other way round.
        spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        # Else more than 32 files are listed by a job of their own.
        spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.threshold", "1000")
        self._delete_leftovers()

    def dataset(self, name: str) -> Dataset:
        return self.definitions.known(name).dataset

    def names(self) -> list[str]:
        return [known.dataset.name for known in self.definitions.all()]

    def last_batch(self, name: str) -> int:
        return self.files.progress(self.definitions.known(name).id).batch

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Files that frames made herein refer to are not deleted before its end."""
        with self.readers.reading(time.time()):
            yield

    def frame(self, name: str, *, through: int) -> DataFrame:
        known = self.definitions.known(name)
        files = self.files.of(known.id)
        later = [file for file in files if not file.is_base and file.first_batch <= through]
        if known.dataset.key is None:
            return self._read(known.dataset, later, after=-1, through=through)
        base = [file for file in files if file.is_base]
        if any(file.last_batch > through for file in base):
            raise UsageError(
                f"dataset {known.dataset.name}: the records of each key as of batch {through} are"
                " not kept any more, only later ones"
            )
        deltas = latest(self._read(known.dataset, later, after=-1, through=through), known.dataset)
        if not base:
            return deltas
        before = self._base(known, base)
        if not later:
            return before
        keys = deltas.select(known.dataset.key)
        return before.join(keys, known.dataset.key, "left_anti").unionByName(deltas)

    def new(self, name: str, *, after: int, through: int) -> DataFrame:
        known = self.definitions.known(name)
        files = [
            file
            for file in self.files.of(known.id)
            if file.last_batch > after and file.first_batch <= through
        ]
        if any(file.is_base for file in files):
            raise UsageError(
                f"dataset {known.dataset.name}: not all records after batch {after} are kept"
            )
        return self._read(known.dataset, files, after=after, through=through)

    def replace(self, known: Known, old: Sequence[StoredFile], new: Sequence[StoredFile]) -> bool:
        """Other files instead of these, which are deleted when nobody reads them any more.

        False if these do not count any more: the dataset was dropped.
        """
        with self.discarding(new):
            return self.files.replace(known.id, old, new, now_s=time.time())

    @contextmanager
    def discarding(self, files: Sequence[StoredFile]) -> Iterator[None]:
        """If they do not come to count within, they are deleted."""
        try:
            yield
        finally:
            named = self.files.all_paths()
            self.folders.delete([file.path for file in files if file.path not in named])

    def forget(self, known: Known) -> None:
        """A dataset that was dropped: its log must be closed, its ingestion stopped."""
        self.files.drop_all(known.id, now_s=time.time())
        self.folders.delete_dataset(known.id)
        self._uncache(known.id)

    def delete_dropped(self, *, grace_s: float) -> int:
        """Delete files that no longer count and that nobody reads; how many."""
        before_s = self.readers.safe_before_s(time.time() - grace_s)
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
        """At the start nobody reads or writes."""
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

    def _base(self, known: Known, files: Sequence[StoredFile]) -> DataFrame:
        """Kept in memory until there is another one."""
        paths = tuple(file.path for file in files)
        with self._lock:
            cached = self._bases.get(known.id)
            if cached is not None and cached[0] == paths:
                return cached[1]
            last_batch = max(file.last_batch for file in files)
            frame = self._read(known.dataset, files, after=-1, through=last_batch)
            if sum(file.rows for file in files) > CACHED_ROWS_MAX:
                return frame
            self._bases[known.id] = paths, frame.persist()
        if cached is not None:
            cached[1].unpersist()
        return frame

    def _uncache(self, dataset: int) -> None:
        with self._lock:
            cached = self._bases.pop(dataset, None)
        if cached is not None:
            cached[1].unpersist()


def latest(records: DataFrame, dataset: Dataset) -> DataFrame:
    """Of each key, the record with the highest position."""
    assert dataset.key is not None
    last = F.max_by(F.struct(*records.columns), F.col(POSITION)).alias("last")
    return records.groupBy(F.col(dataset.key).alias("key")).agg(last).select("last.*")
