"""What a process has used: memory and processor time, as Linux counts them."""

from __future__ import annotations

import os
from pathlib import Path


def peak_mebibytes(process: int | str = "self") -> float:
    """The peak of resident memory.  (ru_maxrss would include that of the parent.)"""
    status = Path(f"/proc/{process}/status").read_text()
    (peak,) = [line.split() for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(peak[1]) / 1024


def processor_s(process: int | None = None) -> float:
    """Processor time of a process, this one by default, and all its descendants."""
    folder = Path(f"/proc/{process or os.getpid()}")
    try:
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        children = [each.read_text().split() for each in folder.glob("task/*/children")]
    except FileNotFoundError:
        return 0.0  # It has just ended.
    own_s = sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")
    return own_s + sum(processor_s(int(child)) for each in children for child in each)


def processes_mebibytes(process: int | None = None) -> float:
    """Memory of a process, this one by default, and all its descendants, now.

    Pages that several of them share count in parts (PSS), so that the sum is what the machine uses.
    """
    folder = Path(f"/proc/{process or os.getpid()}")
    try:
        lines = (folder / "smaps_rollup").read_text().splitlines()
        children = [each.read_text().split() for each in folder.glob("task/*/children")]
    except OSError:
        return 0.0  # It has just ended.
    own = sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
    return own + sum(processes_mebibytes(int(child)) for each in children for child in each)
