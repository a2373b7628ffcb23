"""Measures over X, and live delays beside simulated ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from godwit.experiments.static_tree.claims import sweeps, swept
from godwit.experiments.static_tree.runs import PARITY_BROKERS
from godwit.lab import plots
from godwit.lab.declaration import Figure, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _over_x(
    measure: str, label: str, *, factor: float = 1.0, is_wide: bool = False
) -> Callable[[Axes, Results], None]:
    """`is_wide` if the values of the two sizes are too far apart for a linear axis."""

    def draw(axes: Axes, results: Results) -> None:
        groups = {
            f"{sweep.runs[0].case['brokers']} brokers, {sweep.runs[0].case['mix']}": sweep
            for sweep in sweeps(results)
        }
        plots.lines(axes, groups, x="x", y=measure, factor=factor)
        plots.doubling(axes, sorted({float(x) for x, _ in swept(results).by("x")}))
        axes.set_xlabel("X: brokers with subscribers of one publisher")
        axes.set_ylabel(label)
        if is_wide:
            plots.logarithmic(axes)
        else:
            axes.set_ylim(bottom=0)

    return draw


def _side_by_side(axes: Axes, results: Results) -> None:
    parity = results.where(brokers=PARITY_BROKERS)
    groups = {name: parity.where(driver=name) for name in ("simulated", "live")}
    measures = {"delay_s_mean": "mean", "delay_s_p50": "median", "delay_s_p99": "99th percentile"}
    plots.bars(axes, groups, measures, factor=1000.0)
    axes.set_ylabel("delivery delay, ms")


FIGURES = (
    Figure(
        "message-rate",
        "Mean message rate of a broker, in and out together. Whiskers: lowest and highest seed, in"
        " this and in all figures.",
        _over_x("messages_per_s_mean", "message rate, messages/s", is_wide=True),
    ),
    Figure(
        "busiest",
        "Message rate of the busiest broker.",
        _over_x("messages_per_s_max", "highest message rate, messages/s", is_wide=True),
    ),
    Figure(
        "hops",
        "Hops of a delivery: links between the publisher's and the subscriber's broker.",
        _over_x("hops_mean", "mean hops"),
    ),
    Figure(
        "delay",
        "Delay of a delivery, from acceptance by the publisher's broker to the subscriber.",
        _over_x("delay_s_mean", "mean delivery delay, ms", factor=1000.0),
    ),
    Figure(
        "forwarders",
        "Brokers that serve no publisher and no subscriber and only forward publications.",
        _over_x("pure_forwarders", "pure forwarders, brokers"),
    ),
    Figure(
        "live-and-simulated",
        "The same small scenario through broker processes on this machine and simulated, with the"
        " simulator's default resources. Deliveries and hops are equal (tree-1); delays need not"
        " be, because the model is not fitted to a machine.",
        _side_by_side,
    ),
)
