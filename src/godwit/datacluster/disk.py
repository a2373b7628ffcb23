"""Files that survive a crash: syncing them to the disk, and the lock of a folder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from godwit.errors import UsageError

LOCK_NAME = "lock"


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def locked(folder: Path) -> int:
    """Lock a folder for this process: a file to close when others may write; a crash closes it."""
    file = lock_of(folder / LOCK_NAME)
    if file is None:
        raise UsageError(f"{folder}: another process has this open")
    return file


def lock_of(path: Path) -> int | None:
    """A file that this process has locked until it is closed; None if another one has locked it."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file
