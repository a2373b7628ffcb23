"""The figures of `grape-enterprise` and `grape-random`: measures over X, a line for each policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from godwit.experiments.relocating_claims import POLICIES, cluster, planetlab
from godwit.lab import plots
from godwit.lab.experiment import Figure, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMES = dict(zip(POLICIES, ("static", "POP", "GRAPE load 100%", "GRAPE delay 100%"), strict=True))
Draw = Callable[["Axes", Results], None]


def _over_x(pick: Callable[[Results], Results], measure: str, label: str, factor: float) -> Draw:
    def draw(axes: Axes, results: Results) -> None:
        picked = pick(results)
        groups = {name: picked.where(policy=policy) for policy, name in NAMES.items()}
        plots.lines(axes, groups, x="x", y=measure, factor=factor)
        plots.doubling(axes, sorted({float(x) for x, _ in picked.by("x")}))
        axes.set_xlabel("X: brokers with subscribers of one publisher")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)

    return draw


def _figures(
    name: str, caption: str, measure: str, label: str, factor: float = 1.0
) -> list[Figure]:
    return [
        Figure(
            f"{name}-{which}", f"{caption}, {which} tree.", _over_x(pick, measure, label, factor)
        )
        for which, pick in (("smaller", planetlab), ("larger", cluster))
    ]


FIGURES = (
    *_figures(
        "message-rate", "Mean message rate of a broker, in and out", "messages_per_s_mean",
        "message rate, messages/s",
    ),
    *_figures(
        "input", "Mean input utilisation of a broker", "input_utilisation_mean",
        "input utilisation, %", 100.0,
    ),
    *_figures("hops", "Mean hops of a delivery", "hops_mean", "hops"),
    *_figures(
        "delay", "Mean delay of a delivery", "delay_s_mean", "delivery delay, ms", 1000.0
    ),
    *_figures(
        "overhead", "Letters and routing messages, of all messages in and out", "overhead_share",
        "overhead, %", 100.0,
    ),
    *_figures("moves", "Moves of publishers, from the beginning", "moves", "moves"),
)  # fmt: skip
