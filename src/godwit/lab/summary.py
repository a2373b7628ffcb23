"""The outcome of an experiment as data: its numbers over seeds, and the verdicts.

`godwit lab run --json` prints it, `godwit lab report` writes it beside the pages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import mean, stdev

import msgspec

from godwit.lab.declaration import Case, Experiment, Parameter, Results
from godwit.lab.rules import Claim, Verdict

#: Significant digits of the numbers.
DIGITS = 7


@dataclass(frozen=True, slots=True)
class Statistic:
    """A measure of one case, over its seeds."""

    unit: str
    n: int
    mean: float
    stddev: float | None
    """None for a single seed."""

    min: float
    max: float


@dataclass(frozen=True, slots=True)
class OfCase:
    case: dict[str, Parameter]
    values: dict[str, Statistic]


@dataclass(frozen=True, slots=True)
class Judged:
    id: str
    statement: str
    source: str
    rule: str
    paper: float | None
    """The stated value, if it is a number."""

    measured: float | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Summary:
    experiment: str
    scale: str
    seeds: list[int]
    metrics: list[OfCase]
    claims: list[Judged]

    def count(self, verdict: Verdict) -> int:
        return sum(claim.verdict is verdict for claim in self.claims)

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)

    @staticmethod
    def from_json(text: bytes) -> Summary:
        return msgspec.json.decode(text, type=Summary)


def summarise(
    experiment: Experiment, scale: str, results: Results, *, judged: bool = True
) -> Summary:
    """Pass `judged=False` if cases are missing: claims are about all cases of a scale."""
    cases: list[Case] = []
    for run in results.runs:
        if run.case not in cases:
            cases.append(run.case)
    return Summary(
        experiment.name,
        scale,
        sorted({run.seed for run in results.runs}),
        [_of_case(experiment, case, results) for case in cases],
        [_judged(claim, results) for claim in experiment.claims] if judged else [],
    )


def _of_case(experiment: Experiment, case: Case, results: Results) -> OfCase:
    runs = [run.values for run in results.runs if run.case == case]
    values = {
        name: _statistic([values[name] for values in runs], measure.unit)
        for name, measure in experiment.measures.items()
        if name in runs[0] and measure.is_listed
    }
    return OfCase(dict(case), values)


def _statistic(values: Iterable[float], unit: str) -> Statistic:
    each = list(values)
    return Statistic(
        unit=unit,
        n=len(each),
        mean=_rounded(mean(each)),
        stddev=_rounded(stdev(each)) if len(each) > 1 else None,
        min=_rounded(min(each)),
        max=_rounded(max(each)),
    )


def _judged(claim: Claim, results: Results) -> Judged:
    judgement = claim.judge(results)
    return Judged(
        id=claim.id,
        statement=claim.statement,
        source=claim.source,
        rule=claim.rule.text,
        paper=claim.rule.stated,
        measured=None if judgement.measured is None else _rounded(judgement.measured),
        verdict=judgement.verdict,
    )


def _rounded(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")
