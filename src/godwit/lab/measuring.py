"""Turns traces into numbers, in threads beside the runs, with one Spark session.

Spark takes seconds to start, so it is started before there is anything to measure.  What a trace
of ordinary size costs is mostly the planning of the query, which uses one processor: hence threads.
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
from godwit.lab.cache import Run
from godwit.lab.experiment import Experiment
from godwit.lab.reading import read_trace
from godwit.lab.workers import Failure
from godwit.spark.session import spark_session

THREADS = 2


class Measuring:
    """`take` hands over a trace; `on_measured` is told its numbers, in one of the threads."""

    def __init__(
        self,
        experiment: Experiment,
        master: str,
        on_measured: Callable[[Run, dict[str, float]], None],
        *,
        session: SparkSession | None = None,
    ) -> None:
        """Without a session it starts one of its own, and stops it."""
        self.failed: tuple[Run | None, Failure] | None = None
        """The run that could not be measured; none, if Spark did not start."""

        self._experiment = experiment
        self._master = master
        self._on_measured = on_measured
        self._session = session
        self._is_own = session is None
        self._is_stopped = False
        self._reporting = threading.Lock()
        """Nothing is reported any more once `stop` has had it."""
        self._traces: SimpleQueue[tuple[Run, Path] | None] = SimpleQueue()
        self._starting = threading.Lock()
        # Daemons: nobody who wants to stop waits for Spark to start.
        self._threads = [
            threading.Thread(target=self._measure_all, daemon=True) for _ in range(THREADS)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def take(self, run: Run, trace: Path) -> None:
        self._traces.put((run, trace))

    def finish(self) -> None:
        """Wait until everything is measured."""
        for _ in self._threads:
            self._traces.put(None)
        for thread in self._threads:
            thread.join()

    def stop(self) -> None:
        """Let go of what is under way and of what waits."""
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
        except Exception as error:  # noqa: BLE001  It is told in the main thread.
            first_line = str(error).partition("\n")[0]  # Spark's go on with a stack of Java's.
            sentence = f"{type(error).__name__}: {first_line}"
            self.failed = run, Failure(sentence, traceback.format_exc())

    def _report(self, run: Run, values: dict[str, float]) -> None:
        with self._reporting:
            if not self._is_stopped:
                self._on_measured(run, values)


def checked(experiment: Experiment, values: dict[str, float]) -> dict[str, float]:
    """The numbers in the order in which they are declared, each a number that is declared."""
    strangers = values.keys() - experiment.measures.keys()
    if strangers:
        raise UsageError(f"{', '.join(sorted(strangers))}: no such measure is declared")
    for name, value in values.items():
        if value is None or not isfinite(value):
            raise UsageError(f"{name} is {value}: there was nothing to measure")
    return {name: float(values[name]) for name in experiment.measures if name in values}
