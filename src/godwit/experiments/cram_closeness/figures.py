"""The metrics beside each other: figure 7.21 of the thesis."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from godwit.experiments.allocation.claims import INTERSECT, IOS, IOU, XOR
from godwit.experiments.cram_closeness.claims import EQUAL, UNEQUAL, deployed
from godwit.lab.declaration import Figure, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METRICS = {INTERSECT: "INTERSECT", XOR: "XOR", IOS: "IOS", IOU: "IOU"}


def _bars(measure: str, label: str, factor: float = 1.0) -> Callable[[Axes, Results], None]:
    def draw(axes: Axes, results: Results) -> None:
        for place, capacity in enumerate((EQUAL, UNEQUAL)):
            for number, (algorithm, name) in enumerate(METRICS.items()):
                axes.bar(
                    place + (number - 1.5) * 0.2,
                    factor * deployed(results, algorithm, capacity).mean(measure),
                    0.19,
                    color=f"C{number}",
                    label=name if not place else None,
                )
        axes.set_xticks((0, 1), ("equal brokers", "unequal brokers"))
        axes.grid(visible=False, axis="x")
        axes.set_ylabel(label)
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, fontsize="small")

    return draw


FIGURES = (
    Figure(
        "message-rate", "Mean incoming message rate of a broker (thesis, figure 7.21a).",
        _bars("messages_in_per_s_mean", "messages/s"),
    ),
    Figure(
        "message-rate-max", "Incoming message rate of the busiest broker (thesis, figure 7.21a).",
        _bars("messages_in_per_s_max", "messages/s"),
    ),
    Figure(
        "delay", "Mean delay of a delivery (thesis, figure 7.21b).",
        _bars("delay_s_mean", "delivery delay, ms", 1000.0),
    ),
    Figure("hops", "Mean hops of a delivery (thesis, figure 7.21c).", _bars("hops_mean", "hops")),
    Figure("time", "Time to make the plan (thesis, figure 7.21d).", _bars("plan_s", "s")),
)  # fmt: skip
