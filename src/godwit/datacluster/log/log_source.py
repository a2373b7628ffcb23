"""A log as a source of Spark's structured streaming.

An offset is the position of the last record that was read.  Spark plans in a process beside the
driver, which sees the log's files but not its writer.  A partition names files and byte ranges, so
that executors can read it wherever the file system is shared.

The writer deletes segments when they are ingested, not `commit` here: so it knows how many bytes
wait in the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from godwit.datacluster.log import log_frames
from godwit.datacluster.log.durable_position import durable_position
from godwit.datacluster.log.log_frames import Frame
from godwit.datacluster.model.schemas import positioned

NAME = "godwit_log"
#: The least that is worth a separate task.
PARTITION_BYTES_MIN = 4 * 2**20
#: Limit of a micro-batch, whatever the number of rows.
BATCH_BYTES_MAX = 64 * 2**20


class LogSource(DataSource):
    """Options: folder, start (position), rows_max (of a batch), tasks_max."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def streamReader(self, schema: StructType) -> LogReader:  # noqa: N802  Spark's name.
        return LogReader(
            Path(self.options["folder"]),
            start=int(self.options["start"]),
            rows_max=int(self.options["rows_max"]),
            tasks_max=int(self.options["tasks_max"]),
        )


@dataclass(frozen=True)
class LogPartition(InputPartition):
    """Consecutive frames."""

    frames: tuple[tuple[Path, Frame], ...]


class LogReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, folder: Path, *, start: int, rows_max: int, tasks_max: int) -> None:
        self._index = _FrameIndex(folder)
        self._start = start
        self._rows_max = rows_max
        self._tasks_max = tasks_max
        self._target: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Used only without a checkpoint: the last position that the dataset has."""
        return {"position": self._start}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._rows_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._index.durable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        after = start["position"]
        through = self._index.durable() if self._target is None else self._target
        if through <= after:
            return start
        if isinstance(limit, ReadAllAvailable):
            return {"position": through}
        rows, size_bytes, last = 0, 0, after
        for _, frame in self._index.between(after, through):
            rows += frame.rows
            size_bytes += frame.size_bytes
            # A micro-batch has at least one frame, or ingestion would never advance.
            if last > after and (rows > self._rows_max or size_bytes > BATCH_BYTES_MAX):
                break
            last = frame.last
        return {"position": last}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[LogPartition]:
        """Frames that are missing were ingested and deleted; Spark will not read them again."""
        wanted = self._index.between(start["position"], end["position"])
        total_bytes = sum(frame.size_bytes for _, frame in wanted)
        tasks = max(1, min(self._tasks_max, total_bytes // PARTITION_BYTES_MIN))
        groups: list[list[tuple[Path, Frame]]] = [[] for _ in range(tasks)]
        before_bytes = 0
        for path, frame in wanted:
            groups[min(before_bytes * tasks // total_bytes, tasks - 1)].append((path, frame))
            before_bytes += frame.size_bytes
        return [LogPartition(tuple(group)) for group in groups if group]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Small frames are joined: a batch of one row costs Spark as much as one of many rows."""
        assert isinstance(partition, LogPartition)
        schemas: dict[Path, pa.Schema] = {}
        batches = []
        for path, frame in partition.frames:
            schema = schemas.get(path) or schemas.setdefault(path, log_frames.schema_of(path))
            batch = log_frames.records(path, frame, schema)
            positions = pa.array(np.arange(frame.first, frame.last + 1, dtype=np.int64))
            batches.append(pa.record_batch([*batch.columns, positions], positioned(schema)))
        return iter(pa.Table.from_batches(batches).combine_chunks().to_batches())


class _FrameIndex:
    """Frames by position, as far as segments have been scanned."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._frames: list[tuple[Path, Frame]] = []
        self._segment: Path | None = None
        self._offset = 0
        self._durable = 0

    def durable(self) -> int:
        """The last position that may be read."""
        position = durable_position(self._folder)
        if position is not None:
            self._durable = position
        return self._durable

    def between(self, after: int, through: int) -> list[tuple[Path, Frame]]:
        """The frames with positions above `after`, up to `through`, which must be durable."""
        if not self._frames or self._frames[-1][1].last < through:
            self._scan(through)
        if self._frames and self._frames[0][1].last <= after:
            self._frames = [each for each in self._frames if each[1].last > after]
        return [each for each in self._frames if after < each[1].last <= through]

    def _scan(self, through: int) -> None:
        """Index frames up to `through`: later ones are not durable and may be replaced."""
        paths = log_frames.segments(self._folder)
        for path in paths if self._segment is None else [p for p in paths if p >= self._segment]:
            if path != self._segment:
                self._segment, self._offset = path, 0
            try:
                for frame in log_frames.frames(path, offset=self._offset):
                    if frame.first > through:
                        return
                    self._offset += frame.size_bytes
                    if frame.rows:
                        self._frames.append((path, frame))
            except FileNotFoundError:
                pass  # It was ingested and deleted meanwhile.
