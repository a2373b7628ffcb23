"""Measures over the weight, a line for each primary metric and workload."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from godwit.experiments.grape_weights.claims import SELECTION
from godwit.experiments.placement.claims import DELAY, DELAYS, HOPS, LOAD, MESSAGES
from godwit.lab import plots
from godwit.lab.declaration import Figure, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _over_weight(measure: str, label: str, factor: float) -> Callable[[Axes, Results], None]:
    def draw(axes: Axes, results: Results) -> None:
        groups = {
            f"{policy.removeprefix('grape-')}, {mix}": results.where(mix=mix, policy=policy)
            for mix, _ in results.by("mix")
            for policy in (LOAD, DELAY)
        }
        plots.lines(axes, groups, x="weight", y=measure, factor=factor)
        axes.set_xlabel("weight of the primary metric, %")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)

    return draw


FIGURES = (
    Figure(
        "message-rate", "Mean message rate of a broker, in and out (figure 7.15f).",
        _over_weight(MESSAGES, "message rate, messages/s", 1.0),
    ),
    Figure(
        "delay", "Mean delay of a delivery.", _over_weight(DELAYS, "delivery delay, ms", 1000.0)
    ),
    Figure("hops", "Mean hops of a delivery.", _over_weight(HOPS, "hops", 1.0)),
    Figure(
        "selection", "Time from the query to a decision to move.",
        _over_weight(SELECTION, "selection time, ms", 1000.0),
    ),
)  # fmt: skip
