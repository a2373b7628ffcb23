"""Measures over the length of bit vectors: figure 7.23 of the thesis."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from godwit.experiments.allocation.claims import BIN_PACKING, IOU, label_of
from godwit.experiments.cram_vectors.claims import over_lengths
from godwit.lab import plots
from godwit.lab.declaration import Figure, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _lines(measure: str, label: str) -> Callable[[Axes, Results], None]:
    def draw(axes: Axes, results: Results) -> None:
        groups = {
            f"{label_of(algorithm)}{'' if compensated else ', not scaled'}": Results(
                [
                    run
                    for each in over_lengths(results, algorithm, compensated=compensated)
                    for run in each.runs
                ]
            )
            for algorithm in (BIN_PACKING, IOU)
            for compensated in (True, False)
        }
        plots.lines(axes, groups, x="vector_length", y=measure)
        plots.doubling(axes, sorted({float(n) for n, _ in results.by("vector_length")}))
        axes.set_xlabel("bits of a vector")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)

    return draw


FIGURES = (
    Figure("time", "Time to make the plan (thesis, figure 7.23a).", _lines("plan_s", "s")),
    Figure(
        "message-rate", "Incoming message rate of the busiest broker (thesis, figure 7.23b).",
        _lines("messages_in_per_s_max", "messages/s"),
    ),
    Figure("brokers", "Allocated brokers (thesis, figure 7.23c).", _lines("brokers", "brokers")),
    Figure("overloaded", "Overloaded brokers.", _lines("overloaded", "brokers")),
)  # fmt: skip
