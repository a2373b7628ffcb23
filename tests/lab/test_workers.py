"""Processes that do things: each answers, none is left, whoever stops asking."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from godwit.lab.workers import Failure, in_processes


def note(folder: Path, name: str) -> None:
    (folder / name).write_text(str(os.getpid()))


def sleep(folder: Path, name: str) -> None:
    note(folder, name)
    time.sleep(600.0)


def end(folder: Path, name: str) -> None:
    note(folder, name)
    os.kill(os.getpid(), signal.SIGKILL)


def until(holds: Callable[[], bool], *, within_s: float = 60.0) -> bool:
    for _ in range(int(within_s / 0.05)):
        if holds():
            return True
        time.sleep(0.05)
    return False


def is_running(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def test_everything_is_done_and_a_death_is_noticed(tmp_path: Path) -> None:
    todo = [("end", partial(end, tmp_path, "end"))]
    todo += [(f"n{number}", partial(note, tmp_path, f"n{number}")) for number in range(4)]

    found = dict(in_processes(todo, jobs=2))

    assert found == {
        "end": Failure("its process ended by SIGKILL"),
        **{f"n{number}": None for number in range(4)},
    }
    assert {path.name for path in tmp_path.iterdir()} == found.keys()
    assert not multiprocessing.active_children()


def test_who_stops_asking_ends_the_processes(tmp_path: Path) -> None:
    doing = in_processes(
        [("quick", partial(note, tmp_path, "quick")), ("slow", partial(sleep, tmp_path, "slow"))],
        jobs=2,
    )
    assert next(doing) == ("quick", None)
    assert until((tmp_path / "slow").exists)
    doing.close()

    assert not multiprocessing.active_children()


ORPHAN = """
import sys
from functools import partial
from pathlib import Path
from godwit.lab.workers import in_processes
from tests.lab.test_workers import sleep

if __name__ == "__main__":
    list(in_processes([("slow", partial(sleep, Path(sys.argv[1]), "slow"))], jobs=1))
"""


def test_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    """Even if that was killed and could not tell them."""
    script = tmp_path / "script.py"
    script.write_text(ORPHAN)
    paths = os.pathsep.join(path for path in sys.path if path)
    pid_file = tmp_path / "slow"
    with subprocess.Popen(  # noqa: S603  Our own.
        [sys.executable, str(script), str(tmp_path)], env={**os.environ, "PYTHONPATH": paths}
    ) as process:
        try:
            assert until(lambda: pid_file.exists() and pid_file.read_text() != "")
        finally:
            process.kill()
    pid = int(pid_file.read_text())

    assert until(lambda: not is_running(pid), within_s=20.0)
