"""How much memory Spark's Java processes get on this machine."""

from __future__ import annotations

import logging
import os
from pathlib import Path

log = logging.getLogger("godwit.spark")

MEBIBYTE = 2**20
#: Java gets this share of the memory; the rest is for Python, its workers and the file cache.
SHARE = 4
MIN_MIB, MAX_MIB = 1_024, 8_192
#: A machine with less is too small for Java, Python and its workers side by side.
ENOUGH_MIB = 3_072
#: Of an executor: Spark's own default.  Workers may offer less memory than this machine has, and
#: an executor that finds no room is waited for without end.
EXECUTOR_MIB = 1_024
LIMIT_FILES = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)


def machine_mib() -> int:
    """The memory of this machine, or of the container if that has a limit."""
    pages, page_bytes = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return min([pages * page_bytes, *_limits_bytes()]) // MEBIBYTE


def default_memory_mib(total_mib: int | None = None) -> int:
    """For Java: a quarter of the machine's memory, within bounds."""
    total_mib = machine_mib() if total_mib is None else total_mib
    if total_mib < ENOUGH_MIB:
        log.warning(
            "this machine is too small for Spark: channels may fail, or Java be killed",
            extra={"memory_mib": total_mib, "needed_mib": ENOUGH_MIB},
        )
    return min(max(total_mib // SHARE, MIN_MIB), MAX_MIB)


def _limits_bytes() -> list[int]:
    found = []
    for name in LIMIT_FILES:
        try:
            text = Path(name).read_text().strip()
        except OSError:
            continue
        if text.isdigit():  # Without a limit it is "max".
            found.append(int(text))
    return found
