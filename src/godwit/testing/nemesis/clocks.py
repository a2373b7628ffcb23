"""Clocks of processes that can be set back and forth while they run, by libfaketime.

Only the time of day is changed.  Monotonic clocks, which measure intervals, are left alone, as they
are when the clock of a machine is set.
"""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

MISSING = "clocks are not set: `faketime` is not installed"
ATTEMPTS_MAX = 5
SHARED = Path("/dev/shm")  # noqa: S108  Where the library has its semaphores.


@cache
def library() -> str | None:
    """The library that is loaded first by a process with such a clock; None if there is none."""
    program = shutil.which("faketime")
    if program is None:
        return None
    command = [program, "-f", "+0s", "printenv", "LD_PRELOAD"]
    for _ in range(ATTEMPTS_MAX):  # It fails if its number was one of a process that was killed.
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.stdout.strip():
            return done.stdout.strip()
    return None


def tidy_up(pid: int) -> None:
    """Delete what the library has left behind for a process that was killed."""
    for name in (f"sem.faketime_sem_{pid}", f"faketime_shm_{pid}"):
        (SHARED / name).unlink(missing_ok=True)


class SettableClock:
    """`environment` is for the process; `set` changes its clock, within a second."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.set(0.0)

    def set(self, offset_s: float) -> None:
        """So far from the right time."""
        self._file.write_text(f"{offset_s:+.3f}s\n")

    @property
    def environment(self) -> dict[str, str]:
        """Nothing, if `faketime` is not installed."""
        found = library()
        if found is None:
            return {}
        return {
            "LD_PRELOAD": found,
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
