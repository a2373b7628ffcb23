"""What an experiment is: a value that is complete before anything is run.

    cases x seeds --> run: a trace for each --> measure: numbers for each --> claims, figures

A case has one value for each parameter (`{"brokers": 63, "workload": "random"}`).  `run` runs it
with a seed and leaves a trace in a folder; `measure` turns that trace into named numbers with the
stages of metrics/.  Claims are judged, and figures drawn, from the numbers of all runs.

Read next: rules.py (verdicts), runner.py (runs it), report.py (writes pages).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, TypeAlias

from godwit.errors import GodwitError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pyspark.sql import DataFrame

    from godwit.lab.rules import Claim

#: A value for each parameter.  Plain values only: they are hashed, stored and printed.
Parameter: TypeAlias = str | int | float | bool
Case: TypeAlias = Mapping[str, Parameter]

#: The tables of a trace, by name.
Trace: TypeAlias = Mapping[str, "DataFrame"]


class NotMeasuredError(GodwitError):
    """No run has the case that is asked for: this scale does not have it."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The numbers of one run."""

    case: Case
    seed: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Results:
    """The numbers of all runs of an experiment at one scale."""

    runs: Sequence[Measured]

    def where(self, **parameters: Parameter) -> Results:
        """The runs whose case has these values; `NotMeasuredError` if there are none."""
        return self.only(
            lambda run: all(run.case.get(name) == value for name, value in parameters.items()),
            " ".join(f"{name}={value}" for name, value in parameters.items()),
        )

    def only(self, counts: Callable[[Measured], bool], text: str) -> Results:
        """The runs that count; `NotMeasuredError` with this text if there are none."""
        runs = [run for run in self.runs if counts(run)]
        if not runs:
            raise NotMeasuredError(f"no run has {text}")
        return Results(runs)

    def values(self, name: str) -> list[float]:
        """One measure, of each run."""
        return [run.values[name] for run in self.runs]

    def mean(self, name: str) -> float:
        return mean(self.values(name))

    def by(self, parameter: str) -> Iterator[tuple[Parameter, Results]]:
        """The runs grouped by a parameter, in the order in which its values appear."""
        for value in dict.fromkeys(run.case[parameter] for run in self.runs):
            yield value, self.where(**{parameter: value})

    def by_seed(self) -> Iterator[tuple[int, Results]]:
        for seed in sorted({run.seed for run in self.runs}):
            yield seed, Results([run for run in self.runs if run.seed == seed])


@dataclass(frozen=True, slots=True)
class Measure:
    """A number that is measured of a run."""

    unit: str
    meaning: str
    is_listed: bool = True
    """False for the points of a curve: kept for figures, absent from tables."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A plot for the report."""

    name: str
    """Name of the file, without its ending."""

    caption: str
    draw: Callable[[Axes, Results], None]


@dataclass(frozen=True, slots=True)
class Scale:
    cases: Sequence[Case]
    seeds: int
    """Default number of seeds: 1, 2, 3 ..."""

    once: Sequence[Case] = ()
    """Long cases, which are run with the first seed only."""

    @property
    def runs(self) -> int:
        return len(self.cases) * self.seeds + len(self.once)


def _never(_case: Case) -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class Experiment:
    name: str
    title: str
    question: str
    """What it finds out, in a sentence or two for readers who do not know the code."""

    setup: str
    """What is run, in Markdown."""

    scales: Mapping[str, Scale]
    """`small` takes less than a minute; `paper` has the paper's sizes."""

    run: Callable[[Case, int, Path], None]
    """Runs a case with a seed and leaves a trace in the folder.  A function of a module, because it
    is called in other processes."""

    measure: Callable[[Trace, Case], dict[str, float]]
    """The numbers of one trace: those of `measures` that apply to its case."""

    measures: Mapping[str, Measure]
    claims: Sequence[Claim] = ()
    figures: Sequence[Figure] = ()
    remarks: str = ""
    """What did not reproduce and the likely reasons, in Markdown; written after the runs."""

    uses: Sequence[str] = field(default=())
    """Packages and modules of ours whose change voids earlier runs, besides those that `run` and
    `measure` import (code_version.py)."""

    shares: str = ""
    """A name for runs that several experiments have in common: equal cases of experiments with the
    same name here, the same `run` and the same `measure` are run once.  Default: its own."""

    alone: Callable[[Case], bool] = _never
    """Cases that depend on the wall clock.  They are run one by one, before all others."""
