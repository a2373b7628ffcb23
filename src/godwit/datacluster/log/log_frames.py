"""The format of a log: segment files that consist of frames.

    segment   named by its first position; its first frame repeats all sequences and marks
    frame     header, meta (sequences of sources, marks of streams), records as Arrow

A frame is whole if its checksum is right.  Frames are only added at the end of the last segment,
so a frame that is not whole was the last write before a crash: anywhere else it is damage.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias

import msgspec
import pyarrow as pa

from godwit.errors import GodwitError

MAGIC = b"GWF1"
#: magic, checksum of all that follows it, bytes of meta, bytes of records, first position, rows
HEADER = struct.Struct("<4sIIIQI")
_CHECKED_FROM = 8
SUFFIX = ".log"

Marks: TypeAlias = dict[str, str | int]


class DamagedError(GodwitError):
    """A log is damaged."""


class Meta(msgspec.Struct, frozen=True, array_like=True):
    sequences: dict[str, int]
    """The last sequence number of each source that has records in this frame."""

    marks: Marks
    since: int
    """The first position of the write that the frame was part of."""

    schema: bytes | None = None
    """Only in the first frame of a segment, which has the sequences and marks of all sources."""


class Frame(NamedTuple):
    """The place of a frame in its file, and the positions of its records."""

    offset: int
    size_bytes: int
    first: int
    rows: int

    @property
    def last(self) -> int:
        return self.first + self.rows - 1


def pack(meta: Meta, first: int, rows: int, records: bytes | memoryview) -> bytes:
    encoded = msgspec.msgpack.encode(meta)
    header = HEADER.pack(MAGIC, 0, len(encoded), len(records), first, rows)
    packed = bytearray().join((header, encoded, records))
    struct.pack_into("<I", packed, 4, zlib.crc32(memoryview(packed)[_CHECKED_FROM:]))
    return bytes(packed)


def header_at(file: BinaryIO, offset: int) -> Frame | None:
    """The frame at `offset`, from its header; None if it has none."""
    file.seek(offset)
    header = file.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    magic, _, meta_bytes, record_bytes, first, rows = HEADER.unpack(header)
    if magic != MAGIC:
        return None
    return Frame(offset, HEADER.size + meta_bytes + record_bytes, first, rows)


def frames(path: Path, *, offset: int = 0) -> Iterator[Frame]:
    """The frames from `offset` on, by their headers, up to the first that the file cuts off."""
    with path.open("rb") as file:
        end = file.seek(0, 2)
        while (frame := header_at(file, offset)) and offset + frame.size_bytes <= end:
            yield frame
            offset += frame.size_bytes


def read(path: Path, frame: Frame) -> tuple[Meta, memoryview] | None:
    """The meta and the records of a frame; None if it is not whole."""
    with path.open("rb") as file:
        file.seek(frame.offset)
        data = file.read(frame.size_bytes)
    if len(data) < frame.size_bytes:
        return None
    _, checksum, meta_bytes, _, _, _ = HEADER.unpack_from(data)
    view = memoryview(data)
    if zlib.crc32(view[_CHECKED_FROM:]) != checksum:
        return None
    records_from = HEADER.size + meta_bytes
    meta = msgspec.msgpack.decode(view[HEADER.size : records_from], type=Meta)
    return meta, view[records_from:]


def schema_of(path: Path) -> pa.Schema:
    """The schema of the records in a segment."""
    head = next(frames(path), None)
    found = read(path, head) if head is not None else None
    if found is None or found[0].schema is None:
        raise DamagedError(f"{path.name}: the first frame of this segment is damaged")
    return pa.ipc.read_schema(pa.py_buffer(found[0].schema))


def records(path: Path, frame: Frame, schema: pa.Schema) -> pa.RecordBatch:
    found = read(path, frame)
    if found is None:
        raise DamagedError(f"{path.name}: the frame at byte {frame.offset} is damaged")
    return pa.ipc.read_record_batch(pa.py_buffer(found[1]), schema)


def segments(folder: Path) -> list[Path]:
    """The segments of a log, by position."""
    return sorted(folder.glob(f"*{SUFFIX}"))


def segment_path(folder: Path, first: int) -> Path:
    return folder / f"{first:020d}{SUFFIX}"


def first_of(path: Path) -> int:
    return int(path.stem)
