"""Runs an experiment: plays the runs that are not in the cache, measures them, stores the numbers.

    runs (case x seed)  --> processes: a trace for each  --> a thread with Spark: numbers for each

A run that fails stops all others.  Complete runs stay, as after Ctrl-C, and are not repeated.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from godwit.errors import GodwitError, UsageError
from godwit.lab.cache import Cache, PlannedRun
from godwit.lab.declaration import Case, Experiment, Results, Scale
from godwit.lab.measuring import Measuring
from godwit.lab.progress import Progress
from godwit.lab.workers import Failure, in_processes
from godwit.spark.session import LOCAL


class RunError(GodwitError):
    """A run of an experiment failed.  The message says which, and how to repeat it alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How an experiment is run.  None of these options changes a number."""

    jobs: int
    cache: Path
    master: str = LOCAL
    session: SparkSession | None = None
    """An existing session; default: one is started at the master, and stopped."""

    keep_traces: bool = False


def planned(
    experiment: Experiment,
    scale: str,
    *,
    seeds: Sequence[int] | None = None,
    only: Mapping[str, str] | None = None,
) -> list[PlannedRun]:
    """The runs of an experiment at a scale; with `only`, of cases with these values, as text."""
    declared = scale_named(experiment, scale)
    cases, once = (
        [case for case in some if _has(case, only or {})]
        for some in (declared.cases, declared.once)
    )
    if not cases and not once:
        raise UsageError(
            f"no case of {experiment.name} at the scale {scale} has"
            f" {' '.join(f'{name}={value}' for name, value in (only or {}).items())}"
        )
    numbers = seeds if seeds is not None else range(1, declared.seeds + 1)
    repeated = [PlannedRun(case, seed) for case in cases for seed in numbers]
    return repeated + [PlannedRun(case, seed) for case in once for seed in numbers[:1]]


def scale_named(experiment: Experiment, scale: str) -> Scale:
    try:
        return experiment.scales[scale]
    except KeyError:
        raise UsageError(
            f"{experiment.name} has no scale {scale!r}; choose from {', '.join(experiment.scales)}"
        ) from None


def _has(case: Case, only: Mapping[str, str]) -> bool:
    return all(name in case and str(case[name]) == value for name, value in only.items())


def run_experiment(
    experiment: Experiment,
    scale: str,
    runs: Sequence[PlannedRun],
    options: RunOptions,
    progress: Progress,
) -> Results:
    """The numbers of these runs, in their order."""
    with Cache(options.cache, experiment) as cache:
        todo = [run for run in runs if cache.find(run) is None]
        with progress.of(len(runs), found=len(runs) - len(todo)):
            if todo:
                _Runner(experiment, scale, options, cache, progress).run(todo)
        measured = [cache.find(run) for run in runs]
    return Results([each for each in measured if each is not None])


class _Runner:
    def __init__(
        self,
        experiment: Experiment,
        scale: str,
        options: RunOptions,
        cache: Cache,
        progress: Progress,
    ) -> None:
        self._experiment = experiment
        self._scale = scale
        self._options = options
        self._cache = cache
        self._progress = progress
        self._measuring = Measuring(
            experiment, options.master, self._on_measured, session=options.session
        )

    def run(self, todo: Sequence[PlannedRun]) -> None:
        alone = [run for run in todo if self._experiment.alone(run.case)]
        together = [run for run in todo if run not in alone]
        together.sort(key=lambda run: run.seed)  # Cases of a seed may have their set-up in common.
        self._measuring.start()
        try:
            played: list[PlannedRun] = []
            self._play_all(alone, played.append, jobs=1)
            for run in played:  # Not earlier: Spark would disturb the others.
                self._measure(run)
            self._play_all(together, self._measure, jobs=self._options.jobs)
            self._measuring.finish()
            self._check_measuring()
        finally:
            self._measuring.stop()

    def _play_all(
        self, runs: Iterable[PlannedRun], on_played: Callable[[PlannedRun], None], *, jobs: int
    ) -> None:
        playing = ((run, self._play(run)) for run in runs)
        with closing(in_processes(playing, jobs=jobs)) as done:
            for run, failure in done:
                if failure is not None:
                    raise self._error(run, failure)
                self._check_measuring()
                on_played(run)

    def _play(self, run: PlannedRun) -> Callable[[], None]:
        return partial(self._experiment.run, dict(run.case), run.seed, self._cache.begin(run))

    def _measure(self, run: PlannedRun) -> None:
        self._measuring.take(run, self._cache.trace(run))

    def _on_measured(self, run: PlannedRun, values: dict[str, float]) -> None:
        self._cache.finish(run, values, keep_trace=self._options.keep_traces)
        self._progress.done(run)

    def _check_measuring(self) -> None:
        if self._measuring.failed is not None:
            raise self._error(*self._measuring.failed)

    def _error(self, run: PlannedRun | None, failure: Failure) -> GodwitError:
        if run is None:
            return UsageError(f"Spark did not start: {failure.sentence}")
        details = self._cache.fail(run, failure.traceback)
        name = self._experiment.name
        case = " ".join(f"--case {shlex.quote(f'{k}={v}')}" for k, v in run.case.items())
        return RunError(
            f"{name} failed for {run}: {failure.sentence}\n"
            f"  details are in {details}; run it alone with\n"
            f"  godwit lab run {name} --scale {self._scale} --seed {run.seed} {case}"
        )
