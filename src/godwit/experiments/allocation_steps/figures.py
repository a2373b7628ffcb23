"""What each step contributes: figure 7.20 of the thesis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from godwit.experiments.allocation_steps.claims import EQUAL, STEPS, UNEQUAL, step
from godwit.lab import plots
from godwit.lab.declaration import Figure, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _groups(results: Results, capacity: str) -> Mapping[str, Results]:
    return {name: step(results, name, capacity) for name in STEPS}


def _rates(axes: Axes, results: Results, capacity: str) -> None:
    measures = {"messages_in_per_s_mean": "mean", "messages_in_per_s_max": "highest"}
    plots.bars(axes, _groups(results, capacity), measures)
    axes.set_ylabel("incoming messages/s")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize="small")


def _delays(axes: Axes, results: Results) -> None:
    for place, capacity in enumerate((EQUAL, UNEQUAL)):
        for number, (name, found) in enumerate(_groups(results, capacity).items()):
            axes.bar(
                place + (number - 2) * 0.16,
                1000 * found.mean("delay_s_mean"),
                0.15,
                color=f"C{number}",
                label=name if not place else None,
            )
    axes.set_xticks((0, 1), ("equal brokers", "unequal brokers"))
    axes.grid(visible=False, axis="x")
    axes.set_ylabel("delivery delay, ms")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize="small")


FIGURES = (
    Figure(
        "message-rate",
        "Message rates with equal brokers (thesis, figure 7.20a).",
        lambda axes, results: _rates(axes, results, EQUAL),
    ),
    Figure(
        "message-rate-unequal",
        "Message rates with unequal brokers.",
        lambda axes, results: _rates(axes, results, UNEQUAL),
    ),
    Figure("delay", "Mean delay of a delivery (thesis, figure 7.20b).", _delays),
)
