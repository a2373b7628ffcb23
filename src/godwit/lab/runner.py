"""Carries an experiment out: plays what is not in the cache, measures it, and keeps the numbers.

    runs (case x seed)  --> processes: a trace for each  --> a thread with Spark: numbers for each

A run that fails stops all.  What was complete by then stays, as it does on Ctrl-C, and is not run
again.
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
from godwit.lab.cache import Cache, Run
from godwit.lab.experiment import Case, Experiment, Results, Scale
from godwit.lab.measuring import Measuring
from godwit.lab.progress import Progress
from godwit.lab.workers import Failure, in_processes
from godwit.spark.session import LOCAL


class RunError(GodwitError):
    """A run of an experiment went wrong: says which, and how to run it by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """With what an experiment is carried out.  None of it changes a number."""

    jobs: int
    cache: Path
    master: str = LOCAL
    session: SparkSession | None = None
    """One that is there already; without, one is started at the master, and stopped."""

    keep_traces: bool = False


def planned(
    experiment: Experiment,
    scale: str,
    *,
    seeds: Sequence[int] | None = None,
    only: Mapping[str, str] | None = None,
) -> list[Run]:
    """The runs of an experiment at a scale; only those of the cases with these values, as text."""
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
    repeated = [Run(case, seed) for case in cases for seed in numbers]
    return repeated + [Run(case, seed) for case in once for seed in numbers[:1]]


def scale_named(experiment: Experiment, scale: str) -> Scale:
    try:
        return experiment.scales[scale]
    except KeyError:
        raise UsageError(
            f"{experiment.name} has no scale {scale!r}; choose from {', '.join(experiment.scales)}"
        ) from None


def _has(case: Case, only: Mapping[str, str]) -> bool:
    return all(name in case and str(case[name]) == value for name, value in only.items())


def carry_out(
    experiment: Experiment, scale: str, runs: Sequence[Run], means: Means, progress: Progress
) -> Results:
    """The numbers of these runs, in their order."""
    with Cache(means.cache, experiment) as cache:
        todo = [run for run in runs if cache.find(run) is None]
        with progress.of(len(runs), found=len(runs) - len(todo)):
            if todo:
                _Carrying(experiment, scale, means, cache, progress).out(todo)
        measured = [cache.find(run) for run in runs]
    return Results([each for each in measured if each is not None])


class _Carrying:
    def __init__(
        self, experiment: Experiment, scale: str, means: Means, cache: Cache, progress: Progress
    ) -> None:
        self._experiment = experiment
        self._scale = scale
        self._means = means
        self._cache = cache
        self._progress = progress
        self._measuring = Measuring(
            experiment, means.master, self._on_measured, session=means.session
        )

    def out(self, todo: Sequence[Run]) -> None:
        alone = [run for run in todo if self._experiment.alone(run.case)]
        together = [run for run in todo if run not in alone]
        self._measuring.start()
        try:
            played: list[Run] = []
            self._play_all(alone, played.append, jobs=1)
            for run in played:  # Not earlier: Spark would be in the way of the others.
                self._measure(run)
            self._play_all(together, self._measure, jobs=self._means.jobs)
            self._measuring.finish()
            self._check_measuring()
        finally:
            self._measuring.stop()

    def _play_all(
        self, runs: Iterable[Run], on_played: Callable[[Run], None], *, jobs: int
    ) -> None:
        playing = ((run, self._play(run)) for run in runs)
        with closing(in_processes(playing, jobs=jobs)) as done:
            for run, failure in done:
                if failure is not None:
                    raise self._error(run, failure)
                self._check_measuring()
                on_played(run)

    def _play(self, run: Run) -> Callable[[], None]:
        return partial(self._experiment.run, dict(run.case), run.seed, self._cache.begin(run))

    def _measure(self, run: Run) -> None:
        self._measuring.take(run, self._cache.trace(run))

    def _on_measured(self, run: Run, values: dict[str, float]) -> None:
        self._cache.finish(run, values, keep_trace=self._means.keep_traces)
        self._progress.done(run)

    def _check_measuring(self) -> None:
        if self._measuring.failed is not None:
            raise self._error(*self._measuring.failed)

    def _error(self, run: Run | None, failure: Failure) -> GodwitError:
        if run is None:
            return UsageError(f"Spark did not start: {failure.sentence}")
        told = self._cache.fail(run, failure.traceback)
        name = self._experiment.name
        case = " ".join(f"--case {shlex.quote(f'{k}={v}')}" for k, v in run.case.items())
        return RunError(
            f"{name} failed for {run}: {failure.sentence}\n"
            f"  all of it is in {told}; run it by itself with\n"
            f"  godwit lab run {name} --scale {self._scale} --seed {run.seed} {case}"
        )
