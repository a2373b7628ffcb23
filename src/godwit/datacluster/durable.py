"""How far a log may be read: the last position that is safely on the disk.

One process writes the log and another one, on the same machine, plans what Spark reads of it.
What is written but not yet safe may be taken back, so a reader must not see it.  The position is
therefore told apart from the log, in a file of twelve bytes that is written in place.  It need not
survive a crash: whoever opens the log for writing finds out anew.
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


class Durable:
    """The writer's end."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / FILE_NAME, os.O_RDWR | os.O_CREAT, 0o644)

    def tell(self, position: int) -> None:
        packed = _POSITION.pack(position)
        os.pwrite(self._file, packed + _CHECKSUM.pack(zlib.crc32(packed)), 0)

    def close(self) -> None:
        os.close(self._file)


def durable_position(folder: Path) -> int | None:
    """None if it is being written just now, or there is no log."""
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
