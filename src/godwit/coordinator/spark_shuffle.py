"""Stage 3 as a Spark job in another process: the shuffle of very many subscribers.

    coordinator, in a thread              the job, a process (shuffle_job.py)
    holdings.npz  ----------------------> Spark: planning_on_spark.py
    home.npy      <----------------------

The coordinator itself needs neither Spark nor Java: the job has its own interpreter and JVM, and
both end with it.  The shuffle runs in the thread that plans; the event loop goes on meanwhile.

S1  A job that fails, or takes longer than `limit_s`, is replaced by the greedy shuffle here.
S2  After `close` no job runs, and none is started.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from godwit.distribution import install_hint
from godwit.errors import GodwitError, UsageError
from godwit.policies.staged.loads import Ints, Subscribers, check_home
from godwit.policies.staged.shuffle import greedy_shuffle
from godwit.spark.java import java_home

log = logging.getLogger("godwit.coordinator")

HOLDINGS, HOME = "holdings.npz", "home.npy"
JOB = (sys.executable, "-m", "godwit.coordinator.shuffle_job")
#: The end of a failed job's output that is logged.
SHOWN_MAX = 2_000


class ShuffleFailedError(GodwitError):
    """The job gave no assignment."""


def check_spark() -> None:
    """Raise UsageError if a job could not start on this machine."""
    for module in ("pyspark", "pyarrow"):
        if find_spec(module) is None:
            raise UsageError(
                f"spark_from needs the package {module}: remove the setting, or "
                + install_hint("datacluster")
            )
    java_home()


class SparkShuffle:
    """A shuffler (policies/staged/planning.py).  `close` may be called from any thread."""

    def __init__(self, master: str, limit_s: float, job: Sequence[str] = JOB) -> None:
        self._master = master
        self._limit_s = limit_s
        self._job = job
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._is_closed = False

    def __call__(self, subscribers: Subscribers, m: int) -> Ints:
        try:
            with TemporaryDirectory(prefix="godwit-shuffle-") as folder:
                return self._shuffled(Path(folder), subscribers, m)
        except (GodwitError, OSError, ValueError) as error:
            if self._is_closed:
                raise
            log.warning("the Spark job failed; shuffling here", extra={"why": str(error)})  # S1
            return greedy_shuffle(subscribers, m)

    def _shuffled(self, folder: Path, subscribers: Subscribers, m: int) -> Ints:
        np.savez(
            folder / HOLDINGS,
            starts=subscribers.starts,
            held=subscribers.held,
            rates=subscribers.rates,
        )
        self._run([*self._job, str(folder), self._master, str(m)])
        home: Ints = np.load(folder / HOME)
        check_home(subscribers, home, m)
        return home

    def _run(self, command: Sequence[str]) -> None:
        with self._lock:
            if self._is_closed:  # S2
                raise ShuffleFailedError("the coordinator is stopping")
            self._process = process = subprocess.Popen(  # noqa: S603  It is our own program.
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,  # Ctrl-C is for the coordinator, which ends the job.
            )
        with process:
            try:
                _, output = process.communicate(timeout=self._limit_s)
            except subprocess.TimeoutExpired:
                raise ShuffleFailedError(f"no result within {self._limit_s:g} s") from None
            finally:
                process.kill()
        if process.returncode:
            shown = output.strip()[-SHOWN_MAX:]
            raise ShuffleFailedError(f"exit code {process.returncode}: {shown}")

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            if self._process is not None:
                self._process.kill()
