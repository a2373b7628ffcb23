"""The claims of `allocation-forecast`: all of them our own."""

from __future__ import annotations

from godwit.experiments.allocation.claims import Measured
from godwit.experiments.allocation.runs import BEST
from godwit.experiments.allocation.setups import LATER, PROFILED
from godwit.experiments.allocation.shared_claims import ABOVE_BOUND, OWN, WITHIN
from godwit.lab.declaration import Results
from godwit.lab.rules import Agreement, Claim, ShapeRule

PREDICTED = (
    ("input rate", "input"), ("output bandwidth", "output"), ("message rate", "messages"),
)  # fmt: skip


def _largest(measure: str, quotes: str) -> Measured:
    return lambda results: max(results.where(quotes=quotes).values(measure))


def _none_unforeseen(results: Results) -> bool:
    return not any(results.values("overloaded_unforeseen"))


def _above_bound(results: Results) -> float:
    return max(
        run.values["brokers"] / run.values["lower_bound_brokers"] - 1
        for run in results.where(plan=BEST).runs
    )


CLAIMS = (
    *(
        Claim(
            f"plan-1 {quotes}, {what}", f"The {what} of every broker is as predicted, {quotes}"
            " quotes",
            OWN,
            Agreement(WITHIN, _largest(f"error_{measure}_max", quotes)),
        )
        for quotes in (PROFILED, LATER)
        for what, measure in PREDICTED
    ),
    Claim(
        "plan-2 forecast", "No broker is overloaded that its plan says is not", OWN,
        ShapeRule("overloaded without being foreseen = 0, in every case", _none_unforeseen),
    ),
    Claim(
        "plan-3 forecast", "The best plan has at most 5% more brokers than any plan needs", OWN,
        Agreement(ABOVE_BOUND, _above_bound),
    ),
)  # fmt: skip
