"""Turns traces into numbers, in threads beside the runs, with one Spark session.

Spark takes seconds to start, so it is started before there is anything to measure.  For a trace of
ordinary size most of the time is query planning, which uses one processor: hence threads.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from queue import SimpleQueue

from pyspark.sql import SparkSession

from godwit.errors import GodwitError, UsageError
from godwit.lab.cache import PlannedRun
from godwit.lab.declaration import Experiment
from godwit.lab.metrics.reading import read_trace
from godwit.lab.workers import Failure
from godwit.spark.session import spark_session

THREADS = 2


class Measuring:
    """`take` queues a trace; `on_measured` is called with its numbers, in one of the threads."""

    def __init__(
        self,
        experiment: Experiment,
        master: str,
        on_measured: Callable[[PlannedRun, dict[str, float]], None],
        *,
        session: SparkSession | None = None,
    ) -> None:
        """Without a session it starts one, and stops it in the end."""
        self.failed: tuple[PlannedRun | None, Failure] | None = None
        """The run that could not be measured; None if Spark did not start."""

        self._experiment = experiment
        self._master = master
        self._on_measured = on_measured
        self._session = session
        self._is_own = session is None
        self._is_stopped = False
        self._reporting = threading.Lock()
        """Held while reporting; `stop` takes it, so that nothing is reported afterwards."""
        self._traces: SimpleQueue[tuple[PlannedRun, Path] | None] = SimpleQueue()
        self._starting = threading.Lock()
        # Daemons: a process that stops does not wait for Spark to start.
        self._threads = [
            threading.Thread(target=self._measure_all, daemon=True) for _ in range(THREADS)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def take(self, run: PlannedRun, trace: Path) -> None:
        self._traces.put((run, trace))

    def finish(self) -> None:
        """Wait until everything is measured."""
        for _ in self._threads:
            self._traces.put(None)
        for thread in self._threads:
            thread.join()

    def stop(self) -> None:
        """Abandon current and queued traces."""
        with self._reporting:
            self._is_stopped = True
        for _ in self._threads:
            self._traces.put(None)
        if self._is_own and self._session is not None:
            self._session.stop()

    def _started(self) -> SparkSession:
        with self._starting:
            if self._session is None:
                name = self._experiment.name
                self._session = spark_session(self._master, application=name, for_small=True)
            return self._session

    def _measure_all(self) -> None:
        run = None
        try:
            session = self._started()
            while (taken := self._traces.get()) is not None and not self._is_stopped:
                run, trace = taken
                values = self._experiment.measure(read_trace(session, trace), run.case)
                self._report(run, checked(self._experiment, values))
        except GodwitError as error:
            self.failed = run, Failure(str(error), traceback.format_exc())
        except Exception as error:  # noqa: BLE001  Reported in the main thread.
            first_line = str(error).partition("\n")[
                0
            ]  # Spark's messages go on with a Java stack trace.
            sentence = f"{type(error).__name__}: {first_line}"
            self.failed = run, Failure(sentence, traceback.format_exc())

    def _report(self, run: PlannedRun, values: dict[str, float]) -> None:
        with self._reporting:
            if not self._is_stopped:
                self._on_measured(run, values)


def checked(experiment: Experiment, values: dict[str, float]) -> dict[str, float]:
    """The numbers in the order of their declaration; all must be declared and finite."""
    undeclared = values.keys() - experiment.measures.keys()
    if undeclared:
        raise UsageError(f"{', '.join(sorted(undeclared))}: no such measure is declared")
    for name, value in values.items():
        if value is None or not isfinite(value):
            raise UsageError(f"{name} is {value}: there was nothing to measure")
    return {name: float(values[name]) for name in experiment.measures if name in values}
