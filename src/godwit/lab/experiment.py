"""What an experiment is: a declared value, complete before anything is run.

    cases x seeds --> run: a trace for each --> measure: numbers for each --> claims, figures

A case is one setting of what is varied (`{"brokers": 63, "workload": "random"}`).  `run` plays it
from a seed and leaves a trace in a folder; `measure` turns that trace into named numbers with the
stages of this package.  Claims are judged, and figures drawn, from the numbers of all runs.

Read next: claims.py (verdicts), runner.py (carries it out), report.py (writes it down).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pyspark.sql import DataFrame

    from godwit.lab.claims import Claim

#: One setting of what is varied.  Plain values only: it is hashed, stored and printed.
Parameter: TypeAlias = str | int | float | bool
Case: TypeAlias = Mapping[str, Parameter]

#: The tables of a trace, by name.
Trace: TypeAlias = Mapping[str, "DataFrame"]


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
        """The runs whose case has these values."""
        return Results(
            [
                run
                for run in self.runs
                if all(run.case.get(name) == value for name, value in parameters.items())
            ]
        )

    def values(self, name: str) -> list[float]:
        """A number of each run."""
        return [run.values[name] for run in self.runs]

    def mean(self, name: str) -> float:
        return mean(self.values(name))

    def by(self, parameter: str) -> Iterator[tuple[Parameter, Results]]:
        """The runs, apart for each value of a parameter, in the order in which they appear."""
        for value in dict.fromkeys(run.case[parameter] for run in self.runs):
            yield value, self.where(**{parameter: value})

    def by_seed(self) -> Iterator[tuple[int, Results]]:
        for seed in sorted({run.seed for run in self.runs}):
            yield seed, Results([run for run in self.runs if run.seed == seed])


@dataclass(frozen=True, slots=True)
class Measure:
    """A number that runs of an experiment have."""

    unit: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A plot for the report."""

    name: str
    """Of the file, without its ending."""

    caption: str
    draw: Callable[[Axes, Results], None]


@dataclass(frozen=True, slots=True)
class Scale:
    cases: Sequence[Case]
    seeds: int
    """How many, unless said otherwise: 1, 2, 3 ..."""

    once: Sequence[Case] = ()
    """Cases that are run with the first seed only, because they take long."""

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
    """What it finds out, in a sentence or two for somebody who has not read the code."""

    setup: str
    """What is run, in Markdown."""

    scales: Mapping[str, Scale]
    """`small` takes less than a minute; `paper` has the paper's sizes."""

    run: Callable[[Case, int, Path], None]
    """Plays a case from a seed and leaves a trace in the folder.  A function of a module: it is
    called in other processes."""

    measure: Callable[[Trace, Case], dict[str, float]]
    """The numbers of one trace: those of `measures` that its case has."""

    measures: Mapping[str, Measure]
    claims: Sequence[Claim] = ()
    figures: Sequence[Figure] = ()
    remarks: str = ""
    """What did not reproduce and the likely reason, in Markdown; written after it was run."""

    uses: Sequence[str] = field(default=())
    """Packages and modules of ours whose change makes earlier runs void, besides those that every
    run goes through (code_version.py)."""

    alone: Callable[[Case], bool] = _never
    """Cases that go by the wall clock.  They are run one after the other, before all others."""
