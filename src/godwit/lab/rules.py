"""Claims of papers and theories, and the rules that decide them.

A rule is fixed with the experiment, before it is run.

Reduction  a ratio claim: reproduced if the measured value reaches the stated one within 10%
           relative, exceeded if it is better than stated, not reproduced otherwise; Cost is the
           same where less is better
Agreement  a prediction: reproduced if the measured value is within a stated error of it
ShapeRule  reproduced if an inequality holds for every seed

A claim about cases that the scale does not have is not measured.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Protocol

from godwit.lab.declaration import NotMeasuredError, Results

#: A ratio claim may miss the paper's value by this share of it.
WITHIN = 0.10


class Verdict(Enum):
    REPRODUCED = "reproduced"
    EXCEEDED = "exceeded"
    NOT_REPRODUCED = "not reproduced"
    NOT_MEASURED = "not measured at this scale"


@dataclass(frozen=True, slots=True)
class Judgement:
    measured: float | None
    """For a shape: the share of the seeds for which it holds.  None if it was not measured."""

    verdict: Verdict


class Rule(Protocol):
    @property
    def text(self) -> str:
        """The rule in words."""
        ...

    @property
    def stated(self) -> float | None:
        """The value of the paper or the theory, if the claim has one."""
        ...

    def judge(self, results: Results) -> Judgement: ...


@dataclass(frozen=True, slots=True)
class Reduction:
    """The share by which something is reduced: more is better."""

    is_less_better: ClassVar[bool] = False

    stated: float
    measure: Callable[[Results], float]

    @property
    def text(self) -> str:
        bound, beyond = ("at most", "below") if self.is_less_better else ("at least", "above")
        return (
            f"{bound} {self._limit:.3g} ({self.stated:g} within"
            f" {WITHIN:.0%} relative); {beyond} {self.stated:g} it is exceeded"
        )

    @property
    def _limit(self) -> float:
        return self.stated * (1 + WITHIN if self.is_less_better else 1 - WITHIN)

    def judge(self, results: Results) -> Judgement:
        measured = self.measure(results)
        is_beyond = operator.lt if self.is_less_better else operator.gt
        if is_beyond(measured, self.stated):
            return Judgement(measured, Verdict.EXCEEDED)
        reached = not is_beyond(self._limit, measured)
        return Judgement(measured, Verdict.REPRODUCED if reached else Verdict.NOT_REPRODUCED)


class Cost(Reduction):
    """A cost: less is better."""

    __slots__ = ()
    is_less_better = True


@dataclass(frozen=True, slots=True)
class Agreement:
    """The largest relative error against a prediction."""

    within: float
    error: Callable[[Results], float]
    stated: None = None

    @property
    def text(self) -> str:
        return f"the relative error is at most {100 * self.within:g}% everywhere"

    def judge(self, results: Results) -> Judgement:
        measured = self.error(results)
        agrees = measured <= self.within
        return Judgement(measured, Verdict.REPRODUCED if agrees else Verdict.NOT_REPRODUCED)


@dataclass(frozen=True, slots=True)
class ShapeRule:
    """An inequality, checked for each seed separately."""

    inequality: str
    holds: Callable[[Results], bool]
    stated: None = None

    @property
    def text(self) -> str:
        return f"{self.inequality}, for every seed"

    def judge(self, results: Results) -> Judgement:
        answers = [self.holds(of_seed) for _, of_seed in results.by_seed()]
        share = sum(answers) / len(answers)
        return Judgement(share, Verdict.REPRODUCED if all(answers) else Verdict.NOT_REPRODUCED)


@dataclass(frozen=True, slots=True)
class Claim:
    id: str
    """The paper's (G2), or our own where no paper states it (model-1)."""

    statement: str
    source: str
    """Where it is stated."""

    rule: Rule

    def judge(self, results: Results) -> Judgement:
        """A claim about cases that the scale does not have is neither confirmed nor refuted."""
        try:
            return self.rule.judge(results)
        except NotMeasuredError:
            return Judgement(None, Verdict.NOT_MEASURED)
