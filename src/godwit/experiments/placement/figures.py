"""Measures over X, a line for each policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from godwit.experiments.placement.claims import DELAY, LOAD, POLICIES, STATIC, planetlab
from godwit.lab import plots
from godwit.lab.declaration import Figure, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMES = dict(zip(POLICIES, ("static", "POP", "GRAPE load 100%", "GRAPE delay 100%"), strict=True))
Draw = Callable[["Axes", Results], None]


def _over_x(measure: str, label: str, factor: float) -> Draw:
    def draw(axes: Axes, results: Results) -> None:
        picked = planetlab(results)
        groups = {name: picked.where(policy=policy) for policy, name in NAMES.items()}
        plots.lines(axes, groups, x="x", y=measure, factor=factor)
        plots.doubling(axes, sorted({float(x) for x, _ in picked.by("x")}))
        axes.set_xlabel("X: brokers with subscribers of one publisher")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)

    return draw


def figures(thesis: Mapping[str, str] | None = None) -> list[Figure]:
    """The figures, of the smallest tree; `thesis` has the numbers of its figures by name."""
    numbers = thesis or {}
    return [
        Figure(
            name,
            f"{caption}{f' (thesis, figure {numbers[name]})' if name in numbers else ''}.",
            _over_x(measure, label, factor),
        )
        for name, caption, measure, label, factor in DRAWN
    ]


DRAWN = (
    (
        "message-rate", "Mean message rate of a broker, in and out", "messages_per_s_mean",
        "message rate, messages/s", 1.0,
    ),
    (
        "input", "Mean input utilisation of a broker", "input_utilisation_mean",
        "input utilisation, %", 100.0,
    ),
    ("hops", "Mean hops of a delivery", "hops_mean", "hops", 1.0),
    ("delay", "Mean delay of a delivery", "delay_s_mean", "delivery delay, ms", 1000.0),
    (
        "overhead", "Share of letters and routing messages in all messages", "overhead_share",
        "overhead, %", 100.0,
    ),
    ("moves", "Moves of publishers, from the start", "moves", "moves", 1.0),
    (
        "selection", "Time from the query to a decision to move", "selection_s_mean",
        "selection time, ms", 1000.0,
    ),
    (
        "pause", "Pause of a publisher during a move", "paused_s_mean",
        "pause, ms", 1000.0,
    ),
)  # fmt: skip


def _of_fanouts(policy: str, measure: str, label: str, factor: float) -> Draw:
    def draw(axes: Axes, results: Results) -> None:
        wide = results.where(fanout=4)
        beside = {(run.case["brokers"], run.case["x"]) for run in wide.runs}
        narrow = results.where(fanout=2).only(
            lambda run: (run.case["brokers"], run.case["x"]) in beside, "a size and X of both"
        )
        groups = {
            f"{NAMES[each]}, fan-out {fanout}": of_fanout.where(policy=each)
            for fanout, of_fanout in ((2, narrow), (4, wide))
            for each in (STATIC, policy)
        }
        plots.lines(axes, groups, x="x", y=measure, factor=factor)
        plots.doubling(axes, sorted({float(x) for x, _ in wide.by("x")}))
        axes.set_xlabel("X: brokers with subscribers of one publisher")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)

    return draw


FANOUT_FIGURES = (
    Figure(
        "fanout-message-rate",
        "Mean message rate of a broker, fan-out 2 and 4 (thesis, figure 7.14).",
        _of_fanouts(LOAD, "messages_per_s_mean", "message rate, messages/s", 1.0),
    ),
    Figure(
        "fanout-delay",
        "Mean delay of a delivery, fan-out 2 and 4 (thesis, figure 7.14).",
        _of_fanouts(DELAY, "delay_s_mean", "delivery delay, ms", 1000.0),
    ),
)
