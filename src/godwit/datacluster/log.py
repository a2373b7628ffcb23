"""The log of a dataset: records that were accepted and wait for ingestion.

    append --> frames --> fsync --> acknowledged       ... ingested --> segments deleted

L1  What `append` has returned for is on the disk, once, and comes back after a crash.
L2  A record whose sequence number is not above the last one of its source is not added again.
L3  Positions rise by one from record to record, across restarts.
L4  No more than `waiting_bytes_max` wait: `append` raises FullError and adds nothing.  The same if
    the disk is full.  Either way the log can be used on.
L5  The last sequence number is remembered of the `SOURCES_MAX` sources that sent last, the last
    marks of all.

Calls to `append` come one at a time (inbox.py sees to that); `ingested` may come from another
thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from godwit.datacluster import frames
from godwit.datacluster.durable import Durable
from godwit.datacluster.frames import DamagedError, Marks, Meta
from godwit.datacluster.segments import FullError, SegmentFiles

SEGMENT_BYTES = 32 * 2**20
WAITING_BYTES_MAX = 512 * 2**20
#: A frame is the least that Spark reads at a time.
ROWS_PER_FRAME = 8_192
SOURCES_MAX = 200_000


class LogSettings(msgspec.Struct, frozen=True):
    waiting_bytes_max: int = WAITING_BYTES_MAX
    segment_bytes: int = SEGMENT_BYTES


class Appended(msgspec.Struct, frozen=True):
    added: int
    duplicates: int


def _part(batch: pa.RecordBatch, start: int) -> pa.RecordBatch:
    """The rows of one frame.  Copied: a slice would be written with all texts of the whole."""
    end = min(start + ROWS_PER_FRAME, batch.num_rows)
    if end - start == batch.num_rows:
        return batch
    return batch.take(pa.array(np.arange(start, end)))


class FeedLog:
    def __init__(self, folder: Path, schema: pa.Schema, settings: LogSettings) -> None:
        self.folder = folder
        self.marks: Marks = {}
        """How far streams were received."""
        self.position = 0
        """Of the last record."""
        self.waiting_bytes = 0
        self._sequences: dict[str, int] = {}
        self._schema = schema
        self._settings = settings
        self._ingested = 0
        self._waiting: deque[tuple[int, int]] = deque()  # last position, bytes
        self._waiting_lock = threading.Lock()
        self._files = SegmentFiles(folder)
        self._recover()
        self._durable = Durable(folder)
        self._durable.tell(self.position)

    def append(
        self,
        batch: pa.RecordBatch,
        sources: Sequence[tuple[str, int]],
        marks: Mapping[str, str | int] | None = None,
    ) -> Appended:
        """Add those records that are new.  `sources` are the source and sequence of each."""
        given = len(sources)
        places, updates = self._new(sources)
        changed = {name: mark for name, mark in (marks or {}).items() if self._differs(name, mark)}
        if not places and not changed:
            return Appended(0, given)
        if len(places) < given:
            batch = batch.take(pa.array(places, pa.int64()))
            sources = [sources[place] for place in places]
        packed = self._packed(batch, sources, changed)
        self._refuse_too_much(sum(len(frame) for frame in packed))
        if self._files.size_bytes >= self._settings.segment_bytes:
            self._begin_segment()
        self._files.write(b"".join(packed))
        for start, frame in zip(range(0, batch.num_rows, ROWS_PER_FRAME), packed, strict=False):
            last = self.position + min(start + ROWS_PER_FRAME, batch.num_rows)
            self._wait_for(last, len(frame))
        self.position += batch.num_rows
        self._remember(updates, changed)
        self._durable.tell(self.position)
        return Appended(len(places), given - len(places))

    def ingested(self, through: int) -> None:
        """Records up to that position are in the dataset for good, and need not be kept here."""
        with self._waiting_lock:
            self._ingested = max(self._ingested, through)
            while self._waiting and self._waiting[0][0] <= through:
                self.waiting_bytes -= self._waiting.popleft()[1]
        self._files.delete_through(through)

    def start_after(self, position: int) -> None:
        """Of a log that was lost: what comes next has a position above those that are known."""
        if position > self.position:
            self.position = position
            self._begin_segment()
            self._durable.tell(position)

    def close(self) -> None:
        self._files.close()
        self._durable.close()

    def _differs(self, name: str, mark: str | int) -> bool:
        return name not in self.marks or self.marks[name] != mark

    def _new(self, sources: Sequence[tuple[str, int]]) -> tuple[list[int], dict[str, int]]:
        """Where the records are that are no duplicates, and the last sequences with them."""
        known, updates, places = self._sequences, dict[str, int](), list[int]()
        for place, (source, sequence) in enumerate(sources):
            last = updates.get(source)
            if last is None:
                last = known.get(source)
            if last is None or sequence > last:
                updates[source] = sequence
                places.append(place)
        return places, updates

    def _packed(
        self, batch: pa.RecordBatch, sources: Sequence[tuple[str, int]], marks: Marks
    ) -> list[bytes]:
        """As frames; the marks come with the last one."""
        since = self.position + 1
        packed = []
        for start in range(0, max(batch.num_rows, 1), ROWS_PER_FRAME):
            end = start + ROWS_PER_FRAME
            part = _part(batch, start)
            # Numbers rise, so of each source the last one remains.
            sequences = dict(sources[start:end])
            meta = Meta(sequences, marks if end >= batch.num_rows else {}, since)
            body = memoryview(part.serialize()) if part.num_rows else b""
            packed.append(frames.pack(meta, since + start, part.num_rows, body))
        return packed

    def _refuse_too_much(self, size_bytes: int) -> None:
        limit_bytes = self._settings.waiting_bytes_max
        # What is too long all by itself would wait forever.
        if self.waiting_bytes and self.waiting_bytes + size_bytes > limit_bytes:
            raise FullError(
                f"{self.folder.name}: {self.waiting_bytes:,} bytes wait to be ingested, and"
                f" {size_bytes:,} more would exceed the limit of {limit_bytes:,}"
            )

    def _wait_for(self, last: int, size_bytes: int) -> None:
        with self._waiting_lock:
            self._waiting.append((last, size_bytes))
            self.waiting_bytes += size_bytes

    def _remember(self, sequences: dict[str, int], marks: Marks) -> None:
        for source, sequence in sequences.items():
            self._sequences.pop(source, None)  # So that their order is that of the last records.
            self._sequences[source] = sequence
        while len(self._sequences) > SOURCES_MAX:
            del self._sequences[next(iter(self._sequences))]
        self.marks = {**self.marks, **marks}

    def _begin_segment(self) -> None:
        first = self.position + 1
        schema = self._schema.serialize().to_pybytes()
        head = Meta(self._sequences, self.marks, since=first, schema=schema)
        self._files.begin(first, frames.pack(head, first, 0, b""))
        self._files.delete_through(self._ingested)

    def _recover(self) -> None:
        """Take up the log where it ended."""
        found = self._files.recover()
        if not found:
            self._begin_segment()
            return
        schema = found[0][1].schema
        if schema is None or not pa.ipc.read_schema(pa.py_buffer(schema)).equals(self._schema):
            raise DamagedError(f"the log {self.folder.name} has other columns than its dataset")
        for frame in self._files.closed_frames():
            if frame.rows:
                self._wait_for(frame.last, frame.size_bytes)
        for frame, meta in found:
            self._remember(meta.sequences, meta.marks)
            if frame.rows:
                self._wait_for(frame.last, frame.size_bytes)
        self.position = found[-1][0].last
