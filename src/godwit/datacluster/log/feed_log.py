"""The log of a dataset: records that were accepted and wait for ingestion.

    append --> frames --> fsync --> acknowledged       ... ingested --> segments deleted

L1  When `append` returns, its records are on the disk, once, and survive a crash.
L2  A record whose sequence number is not above the last one of its source is not added again.
L3  Positions rise by one from record to record, across restarts.
L4  At most `waiting_bytes_max` wait: beyond it `append` raises FullError and adds nothing.  The
    same if the disk is full.  The log remains usable in both cases.
L5  The log stores the last sequence numbers of the `SOURCES_MAX` sources that sent last, and the
    last marks of all.

`append` is called by one thread at a time (inbox.py has a lock); `ingested` may be called by
another thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from godwit.datacluster.log import log_frames
from godwit.datacluster.log.durable_position import DurablePosition
from godwit.datacluster.log.log_frames import DamagedError, Marks, Meta
from godwit.datacluster.log.segments import FullError, SegmentFiles

SEGMENT_BYTES = 32 * 2**20
WAITING_BYTES_MAX = 512 * 2**20
#: A frame is the smallest unit that Spark reads.
ROWS_PER_FRAME = 8_192
SOURCES_MAX = 200_000


class LogSettings(msgspec.Struct, frozen=True):
    waiting_bytes_max: int = WAITING_BYTES_MAX
    segment_bytes: int = SEGMENT_BYTES


class Appended(msgspec.Struct, frozen=True):
    added: int
    duplicates: int


def _part(batch: pa.RecordBatch, start: int) -> pa.RecordBatch:
    """The rows of one frame.  A copy: a slice would be written with the texts of all rows."""
    end = min(start + ROWS_PER_FRAME, batch.num_rows)
    if end - start == batch.num_rows:
        return batch
    return batch.take(pa.array(np.arange(start, end)))


class FeedLog:
    def __init__(self, folder: Path, schema: pa.Schema, settings: LogSettings) -> None:
        self.folder = folder
        self.marks: Marks = {}
        """The last position received of each stream of a feed."""
        self.position = 0
        """The position of the last record."""
        self.waiting_bytes = 0
        self._sequences: dict[str, int] = {}
        self._schema = schema
        self._settings = settings
        self._ingested = 0
        self._waiting: deque[tuple[int, int]] = deque()  # last position, bytes
        self._waiting_lock = threading.Lock()
        self._files = SegmentFiles(folder)
        self._recover()
        self._durable = DurablePosition(folder)
        self._durable.write(self.position)

    def append(
        self,
        batch: pa.RecordBatch,
        sources: Sequence[tuple[str, int]],
        marks: Mapping[str, str | int] | None = None,
    ) -> Appended:
        """Add the records that are new.  `sources` has the source and sequence number of each."""
        given = len(sources)
        places, updates = self._new(sources)
        changed = {name: mark for name, mark in (marks or {}).items() if self._differs(name, mark)}
        if not places and not changed:
            return Appended(0, given)
        if len(places) < given:
            batch = batch.take(pa.array(places, pa.int64()))
            sources = [sources[place] for place in places]
        packed = self._packed(batch, sources, changed)
        self._check_room(sum(len(frame) for frame in packed))
        if self._files.size_bytes >= self._settings.segment_bytes:
            self._begin_segment()
        self._files.write(b"".join(packed))
        for start, frame in zip(range(0, batch.num_rows, ROWS_PER_FRAME), packed, strict=False):
            last = self.position + min(start + ROWS_PER_FRAME, batch.num_rows)
            self._add_waiting(last, len(frame))
        self.position += batch.num_rows
        self._remember(updates, changed)
        self._durable.write(self.position)
        return Appended(len(places), given - len(places))

    def last_sequence(self, source: str) -> int:
        """The last sequence number of a source; 0 if it has sent nothing."""
        return self._sequences.get(source, 0)

    def ingested(self, through: int) -> None:
        """Records up to that position are in the dataset and may be deleted here."""
        with self._waiting_lock:
            self._ingested = max(self._ingested, through)
            while self._waiting and self._waiting[0][0] <= through:
                self.waiting_bytes -= self._waiting.popleft()[1]
        self._files.delete_through(through)

    def start_after(self, position: int) -> None:
        """If the log was lost: new records get positions above `position`."""
        if position > self.position:
            self.position = position
            self._begin_segment()
            self._durable.write(position)

    def close(self) -> None:
        self._files.close()
        self._durable.close()

    def _differs(self, name: str, mark: str | int) -> bool:
        return name not in self.marks or self.marks[name] != mark

    def _new(self, sources: Sequence[tuple[str, int]]) -> tuple[list[int], dict[str, int]]:
        """The places of the records that are new, and their last sequence numbers by source."""
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
        """The records as frames; the last one has the marks."""
        since = self.position + 1
        packed = []
        for start in range(0, max(batch.num_rows, 1), ROWS_PER_FRAME):
            end = start + ROWS_PER_FRAME
            part = _part(batch, start)
            # Numbers rise, so the dict keeps the last one of each source.
            sequences = dict(sources[start:end])
            meta = Meta(sequences, marks if end >= batch.num_rows else {}, since)
            body = memoryview(part.serialize()) if part.num_rows else b""
            packed.append(log_frames.pack(meta, since + start, part.num_rows, body))
        return packed

    def _check_room(self, size_bytes: int) -> None:
        limit_bytes = self._settings.waiting_bytes_max
        # An empty log accepts any write, or one above the limit would wait for ever.
        if self.waiting_bytes and self.waiting_bytes + size_bytes > limit_bytes:
            raise FullError(
                f"{self.folder.name}: {self.waiting_bytes:,} bytes wait to be ingested, and"
                f" {size_bytes:,} more would exceed the limit of {limit_bytes:,}"
            )

    def _add_waiting(self, last: int, size_bytes: int) -> None:
        with self._waiting_lock:
            self._waiting.append((last, size_bytes))
            self.waiting_bytes += size_bytes

    def _remember(self, sequences: dict[str, int], marks: Marks) -> None:
        for source, sequence in sequences.items():
            self._sequences.pop(source, None)  # Ordered by when each source sent last.
            self._sequences[source] = sequence
        while len(self._sequences) > SOURCES_MAX:
            del self._sequences[next(iter(self._sequences))]
        self.marks = {**self.marks, **marks}

    def _begin_segment(self) -> None:
        first = self.position + 1
        schema = self._schema.serialize().to_pybytes()
        head = Meta(self._sequences, self.marks, since=first, schema=schema)
        self._files.begin(first, log_frames.pack(head, first, 0, b""))
        self._files.delete_through(self._ingested)

    def _recover(self) -> None:
        """Continue the log where it ended."""
        found = self._files.recover()
        if not found:
            self._begin_segment()
            return
        schema = found[0][1].schema
        if schema is None or not pa.ipc.read_schema(pa.py_buffer(schema)).equals(self._schema):
            raise DamagedError(f"log {self.folder.name}: its columns are not those of its dataset")
        for frame in self._files.closed_frames():
            if frame.rows:
                self._add_waiting(frame.last, frame.size_bytes)
        for frame, meta in found:
            self._remember(meta.sequences, meta.marks)
            if frame.rows:
                self._add_waiting(frame.last, frame.size_bytes)
        self.position = found[-1][0].last
