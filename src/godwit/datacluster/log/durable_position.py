"""The durable position of a log: the last one that is on the disk, up to which it may be read.

One process writes the log; another one, on the same machine, plans what Spark reads of it.  Data
that is written but not yet synced may be truncated, so a reader must not see it.  The position is
therefore stored apart from the log, in a file of twelve bytes that is written in place.  It need
not survive a crash: the writer determines it anew when it opens the log.
"""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

FILE_NAME = "durable"
_POSITION = struct.Struct("<Q")
_CHECKSUM = struct.Struct("<I")
_SIZE_BYTES = _POSITION.size + _CHECKSUM.size


class DurablePosition:
    """The writer's side."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / FILE_NAME, os.O_RDWR | os.O_CREAT, 0o644)

    def write(self, position: int) -> None:
        packed = _POSITION.pack(position)
        os.pwrite(self._file, packed + _CHECKSUM.pack(zlib.crc32(packed)), 0)

    def close(self) -> None:
        os.close(self._file)


def durable_position(folder: Path) -> int | None:
    """The reader's side; None while it is being written, or if there is no log."""
    try:
        data = (folder / FILE_NAME).read_bytes()
    except FileNotFoundError:
        return None
    if len(data) != _SIZE_BYTES:
        return None
    packed, checksum = data[: _POSITION.size], data[_POSITION.size :]
    if _CHECKSUM.pack(zlib.crc32(packed)) != checksum:
        return None
    position: int = _POSITION.unpack(packed)[0]
    return position
