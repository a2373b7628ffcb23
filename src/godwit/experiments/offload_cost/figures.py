"""The time of a decision over the number of subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from godwit.experiments.offload_cost.runs import TIME
from godwit.lab import plots
from godwit.lab.declaration import Figure, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _times(axes: Axes, results: Results) -> None:
    timed = results.where(study=TIME)
    for number, name in enumerate(("input", "match", "output", "random")):
        pairs = [(float(n), some.mean(f"{name}_plan_s")) for n, some in timed.by("number")]
        axes.plot(
            [n for n, _ in pairs], [s for _, s in pairs], marker=plots.MARKERS[number], label=name
        )
    axes.set_xscale("log")
    plots.logarithmic(axes)
    axes.set_xlabel("distinct subscriptions")
    axes.set_ylabel("time of a decision, s")
    axes.legend()


FIGURES = (Figure("times", "Time of a decision.", _times),)
