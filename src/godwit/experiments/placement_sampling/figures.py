"""Measures over the threshold, of POP and of GRAPE."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from godwit.experiments.placement.claims import DELAYS, LOAD, MESSAGES, POP
from godwit.experiments.placement_sampling.claims import OVERHEAD, RESPONSE
from godwit.lab import plots
from godwit.lab.declaration import Figure, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _drawn(measure: str, label: str, factor: float = 1.0) -> Callable[[Axes, Results], None]:
    def draw(axes: Axes, results: Results) -> None:
        if measure == RESPONSE:
            results = results.only(lambda run: run.values["moves"] > 0, "a move")
        groups = {"GRAPE load 100%": results.where(policy=LOAD), "POP": results.where(policy=POP)}
        plots.lines(axes, groups, x="threshold", y=measure, factor=factor)
        plots.doubling(axes, sorted({float(threshold) for threshold, _ in results.by("threshold")}))
        axes.set_xlabel("G_threshold, P_threshold: what is traced before a decision")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)

    return draw


FIGURES = (
    Figure(
        "response",
        "Time of a publisher's first move, of those that move (thesis, figures 7.16 and 7.17).",
        _drawn(RESPONSE, "first move after, s"),
    ),
    Figure(
        "overhead", "Share of letters and routing messages in all messages in and out.",
        _drawn(OVERHEAD, "overhead, %", 100.0),
    ),
    Figure(
        "message-rate", "Mean message rate of a broker, in and out.",
        _drawn(MESSAGES, "message rate, messages/s"),
    ),
    Figure(
        "delay", "Mean delay of a delivery.", _drawn(DELAYS, "delivery delay, ms", 1000.0)
    ),
    Figure("moves", "Moves of publishers, from the start.", _drawn("moves", "moves")),
)  # fmt: skip
