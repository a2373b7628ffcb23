"""The segment files of a log: written at the end of the last one, all of a write or nothing."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from godwit.datacluster import frames
from godwit.datacluster.frames import DamagedError, Frame, Meta
from godwit.errors import GodwitError, UsageError

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_UNFINISHED = ".new"


class FullError(GodwitError):
    """Nothing more can be taken at the moment: whoever sends must wait and send it again."""


class SegmentFiles:
    """One process at a time writes: a lock sees to that, and ends with the process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: int | None = None
        self.size_bytes = 0
        """Of the last segment: what was written to it successfully."""
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = locked(folder)

    def recover(self) -> list[tuple[Frame, Meta]]:
        """The frames of the last segment, which is written from now on.

        A frame that a crash has torn is cut off.
        """
        for unfinished in self._folder.glob(f"*{_UNFINISHED}"):
            unfinished.unlink()
        paths = frames.segments(self._folder)
        if not paths:
            return []
        found = _whole_frames(paths[-1])
        self.size_bytes = sum(frame.size_bytes for frame, _ in found)
        self._file = os.open(paths[-1], os.O_RDWR | os.O_APPEND)
        self._cut_rest()
        return found

    def closed_frames(self) -> Iterator[Frame]:
        """Those of the segments before the last one."""
        for path in frames.segments(self._folder)[:-1]:
            yield from frames.frames(path)

    def begin(self, first: int, head: bytes) -> None:
        """A new segment.  It is there with its head, or not at all."""
        path = frames.segment_path(self._folder, first)
        made = path.with_suffix(_UNFINISHED)
        file = os.open(made, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        try:
            _write_all(file, head)
            os.fsync(file)
            made.rename(path)
            sync_folder(self._folder)
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
            self._cut_rest()
            _write_all(self._file, data)
            os.fdatasync(self._file)
        except OSError as error:
            with suppress(OSError):  # Else before the next write.
                self._cut_rest()
            raise self._explained(error) from None
        self.size_bytes += len(data)

    def delete_through(self, position: int) -> None:
        """Segments that hold nothing above it, except the last one."""
        paths = frames.segments(self._folder)
        for path, following in pairwise(paths):
            if frames.first_of(following) <= position + 1:
                path.unlink(missing_ok=True)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
        os.close(self._lock)

    def _cut_rest(self) -> None:
        """What a write that failed, or a crash, has left at the end."""
        assert self._file is not None
        if os.lseek(self._file, 0, os.SEEK_END) != self.size_bytes:
            os.ftruncate(self._file, self.size_bytes)
            os.fsync(self._file)

    def _explained(self, error: OSError) -> Exception:
        if error.errno in _NO_SPACE:
            return FullError(f"{self._folder.name}: no room on the disk for what has arrived")
        return error


def _whole_frames(path: Path) -> list[tuple[Frame, Meta]]:
    """Up to one that is torn, or the end."""
    found: list[tuple[Frame, Meta]] = []
    position = frames.first_of(path) - 1
    for frame in frames.frames(path):
        contents = frames.read(path, frame)
        if contents is None or frame.first != position + 1:
            break
        found.append((frame, contents[0]))
        position = frame.last
    end = sum(frame.size_bytes for frame, _ in found)
    if not found:
        raise DamagedError(f"{path.name}: the first frame of this segment is damaged")
    _refuse_damage(path, end, position)
    return found


def _refuse_damage(path: Path, end: int, position: int) -> None:
    """What a crash tears was written last.  If a whole frame of a later write follows, it was not.

    Frames of the same write may follow: disks do not write in the order of the bytes.
    """
    data = path.read_bytes()
    place = data.find(frames.MAGIC, end)
    while place >= 0:
        with path.open("rb") as file:
            frame = frames.header_at(file, place)
        contents = frames.read(path, frame) if frame is not None else None
        if contents is not None and contents[0].since > position + 1:
            raise DamagedError(f"{path.name}: the frame at byte {end} is damaged")
        place = data.find(frames.MAGIC, place + 1)


def locked(folder: Path) -> int:
    """A file that is to be closed when others may write there; a crash closes it, too."""
    file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise UsageError(f"{folder}: another process has this open") from None
    return file


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def sync_folder(folder: Path) -> None:
    """Names are safe only when their folder is."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
