"""The segment files of a log: writes go to the end of the last one, completely or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from godwit.datacluster.disk import locked, sync
from godwit.datacluster.log import log_frames
from godwit.datacluster.log.log_frames import DamagedError, Frame, Meta
from godwit.errors import GodwitError

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_UNFINISHED = ".new"


class FullError(GodwitError):
    """The log or the disk is full: the sender must wait and send again."""


class SegmentFiles:
    """Written by one process at a time: a lock ensures that, and ends with the process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: int | None = None
        self.size_bytes = 0
        """Size of the last segment, without writes that failed."""
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = locked(folder)

    def recover(self) -> list[tuple[Frame, Meta]]:
        """Open the last segment for writing; its frames.

        A frame that a crash left incomplete is cut off.
        """
        for unfinished in self._folder.glob(f"*{_UNFINISHED}"):
            unfinished.unlink()
        paths = log_frames.segments(self._folder)
        if not paths:
            return []
        found = _whole_frames(paths[-1])
        self.size_bytes = sum(frame.size_bytes for frame, _ in found)
        self._file = os.open(paths[-1], os.O_RDWR | os.O_APPEND)
        self._truncate()
        return found

    def closed_frames(self) -> Iterator[Frame]:
        """The frames of all segments but the last."""
        for path in log_frames.segments(self._folder)[:-1]:
            yield from log_frames.frames(path)

    def begin(self, first: int, head: bytes) -> None:
        """Start a new segment.  It exists with its head, or not at all."""
        path = log_frames.segment_path(self._folder, first)
        made = path.with_suffix(_UNFINISHED)
        file = os.open(made, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        try:
            _write_all(file, head)
            os.fsync(file)
            made.rename(path)
            sync(self._folder)
        except OSError as error:
            os.close(file)
            made.unlink(missing_ok=True)
            raise self._explained(error) from None
        if self._file is not None:
            os.close(self._file)
        self._file = file
        self.size_bytes = len(head)

    def write(self, data: bytes) -> None:
        assert self._file is not None
        try:
            self._truncate()
            _write_all(self._file, data)
            os.fdatasync(self._file)
        except OSError as error:
            with suppress(OSError):  # Otherwise before the next write.
                self._truncate()
            raise self._explained(error) from None
        self.size_bytes += len(data)

    def delete_through(self, position: int) -> None:
        """Delete segments without positions above it, except the last one."""
        paths = log_frames.segments(self._folder)
        for path, following in pairwise(paths):
            if log_frames.first_of(following) <= position + 1:
                path.unlink(missing_ok=True)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
        os.close(self._lock)

    def _truncate(self) -> None:
        """Cut off what a failed write or a crash has left at the end."""
        assert self._file is not None
        if os.lseek(self._file, 0, os.SEEK_END) != self.size_bytes:
            os.ftruncate(self._file, self.size_bytes)
            os.fsync(self._file)

    def _explained(self, error: OSError) -> Exception:
        if error.errno in _NO_SPACE:
            return FullError(f"{self._folder.name}: the disk is full")
        return error


def _whole_frames(path: Path) -> list[tuple[Frame, Meta]]:
    """The frames up to the first that is incomplete, or the end."""
    found: list[tuple[Frame, Meta]] = []
    position = log_frames.first_of(path) - 1
    for frame in log_frames.frames(path):
        contents = log_frames.read(path, frame)
        if contents is None or frame.first != position + 1:
            break
        found.append((frame, contents[0]))
        position = frame.last
    end = sum(frame.size_bytes for frame, _ in found)
    if not found:
        raise DamagedError(f"{path.name}: the first frame of this segment is damaged")
    _check_damage(path, end, position)
    return found


def _check_damage(path: Path, end: int, position: int) -> None:
    """A crash damages only the last write: a whole frame of a later write means other damage.

    Whole frames of the same write may follow: disks do not write in the order of the bytes.
    """
    data = path.read_bytes()
    place = data.find(log_frames.MAGIC, end)
    while place >= 0:
        with path.open("rb") as file:
            frame = log_frames.header_at(file, place)
        contents = log_frames.read(path, frame) if frame is not None else None
        if contents is not None and contents[0].since > position + 1:
            raise DamagedError(f"{path.name}: the frame at byte {end} is damaged")
        place = data.find(log_frames.MAGIC, place + 1)


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
