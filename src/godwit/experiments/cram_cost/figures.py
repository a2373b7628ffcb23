"""Time to make a plan (figure 7.19e of the thesis), and closeness evaluations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from godwit.experiments.allocation.claims import COMPARED
from godwit.experiments.allocation.figures import over_subscriptions
from godwit.experiments.cram_cost.claims import EQUAL, UNEQUAL
from godwit.experiments.cram_cost.runs import PLAN, SEARCH, STOP_RULE
from godwit.lab import plots
from godwit.lab.declaration import Figure, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _times(axes: Axes, results: Results, capacity: str) -> None:
    draw = over_subscriptions(COMPARED, "plan_s", "time of a plan, s", is_logarithmic=True)
    draw(axes, results.where(study=PLAN, capacity=capacity))


def _evaluations(axes: Axes, results: Results) -> None:
    found = results.where(study=SEARCH)
    exact, stopped = (found.where(search=rule) for rule in ("exact", STOP_RULE))
    plots.lines(axes, {"all pairs": exact}, x="subscriptions", y="pairs")
    plots.lines(
        axes, {"exact bounds": exact, "stop rule": stopped}, x="subscriptions", y="evaluations"
    )
    plots.logarithmic(axes)
    axes.set_xlabel("subscriptions")
    axes.set_ylabel("closeness evaluations")


FIGURES = (
    Figure(
        "time", "Time to make a plan, equal brokers (thesis, figure 7.19e).",
        lambda axes, results: _times(axes, results, EQUAL),
    ),
    Figure(
        "time-unequal", "Time to make a plan, unequal brokers.",
        lambda axes, results: _times(axes, results, UNEQUAL),
    ),
    Figure("evaluations", "Closeness evaluations of CRAM's first search.", _evaluations),
)  # fmt: skip
