"""Stores the numbers of complete runs, so that each is made once.

    FOLDER/static-tree/lock                    held while the experiment is run, or another one
                                               that shares its runs
                       KEY/result.json         the numbers
                       KEY/trace/              the trace; removed unless kept

The key of a run is a digest of the experiment's name, or of what it shares, the case, the seed and
the version of the code (code_version.py).

K1  A run is complete if and only if it has a `result.json`, which is renamed into place.
K2  Only the holder of the lock changes anything.  Incomplete runs that it finds were interrupted,
    and are removed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from godwit.errors import UsageError
from godwit.lab.code_version import code_version
from godwit.lab.declaration import Case, Experiment, Measured

KEY_CHARACTERS = 16


def default_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "godwit"


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A case and the seed to run it with."""

    case: Case
    seed: int

    def __str__(self) -> str:
        return f"{described(self.case)}, seed {self.seed}"


def described(case: Case) -> str:
    return " ".join(f"{name}={value}" for name, value in case.items())


class Cache:
    """The stored runs of one experiment; a context manager that holds the lock."""

    def __init__(self, folder: Path, experiment: Experiment) -> None:
        self._experiment = experiment.shares or experiment.name
        self._folder = folder / self._experiment
        self._version = code_version(experiment)
        self._lock: int | None = None

    def __enter__(self) -> Self:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._unlock()
            raise UsageError(
                f"{self._experiment} is being run by another process in {self._folder.parent};"
                " wait for it, or use another --cache"
            ) from None
        except OSError as error:
            self._unlock()
            raise UsageError(f"cannot write to {self._folder}: {error.strerror}") from None
        for interrupted in self._folder.glob("*/trace"):
            if not _result(interrupted.parent).exists():
                shutil.rmtree(interrupted.parent)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def find(self, run: PlannedRun) -> Measured | None:
        """The numbers of a run, if it is complete."""
        try:
            stored = json.loads(_result(self._run_folder(run)).read_bytes())
        except FileNotFoundError:
            return None
        return Measured(run.case, run.seed, stored["values"])

    def begin(self, run: PlannedRun) -> Path:
        """An empty folder for the trace of a run."""
        shutil.rmtree(self._run_folder(run), ignore_errors=True)
        trace = self.trace(run)
        trace.mkdir(parents=True)
        return trace

    def trace(self, run: PlannedRun) -> Path:
        return self._run_folder(run) / "trace"

    def finish(self, run: PlannedRun, values: dict[str, float], *, keep_trace: bool) -> None:
        """The run is complete."""
        folder = self._run_folder(run)
        result = {"case": dict(run.case), "seed": run.seed, "values": values}
        unfinished = folder / "result.json.new"
        unfinished.write_text(json.dumps(result, indent=1) + "\n")
        unfinished.rename(_result(folder))
        if not keep_trace:
            shutil.rmtree(folder / "trace")

    def fail(self, run: PlannedRun, traceback: str) -> Path:
        """Store the traceback of a failed run; the path of the file."""
        path = self._run_folder(run) / "error.txt"
        path.write_text(traceback)
        return path

    def _run_folder(self, run: PlannedRun) -> Path:
        of = [self._experiment, sorted(run.case.items()), run.seed, self._version]
        key = hashlib.sha256(json.dumps(of).encode()).hexdigest()
        return self._folder / key[:KEY_CHARACTERS]


def _result(folder: Path) -> Path:
    return folder / "result.json"
