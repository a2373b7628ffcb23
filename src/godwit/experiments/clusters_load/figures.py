"""Figure 2 of document 003: the loads of the brokers, for each matching ratio."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from godwit.experiments.clusters.measures import LOADS
from godwit.experiments.clusters.overlay_setups import CLUSTERS
from godwit.lab.curves import drawn
from godwit.lab.declaration import Figure, Results
from godwit.lab.plots import bars, logarithmic

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def by_overlay(results: Results) -> dict[str, Results]:
    found: dict[str, Results] = {}
    for overlay, runs in results.by("overlay"):
        if overlay != CLUSTERS:
            found[str(overlay)] = runs
            continue
        for number, of_number in runs.by("clusters"):
            found[f"{number} clusters" if number != 1 else "1 cluster"] = of_number
    return found


def sorted_loads(place: int) -> Callable[[Axes, Results], None]:
    def draw(axes: Axes, results: Results) -> None:
        ratio, runs = list(results.by("ratio"))[place]
        for label, of_overlay in by_overlay(runs).items():
            curve = drawn(of_overlay, LOADS)
            axes.plot([n + 1 for n, _ in curve], [max(y, 0.1) for _, y in curve], label=label)
        logarithmic(axes)
        axes.set_xlabel("brokers, the busiest first")
        axes.set_ylabel("messages in and out, per second")
        axes.set_title(f"{float(ratio):.0%} of the brokers have a matching subscription")
        axes.legend(ncols=2, fontsize=9)

    return draw


def maxima(axes: Axes, results: Results) -> None:
    groups = by_overlay(results.where(ratio=list(results.by("ratio"))[1][0]))
    bars(axes, groups, {"load_mean": "mean load", "load_max": "busiest broker"})
    axes.set_ylabel("messages in and out, per second")


FIGURES = (
    *(
        Figure(
            f"figure-2-{name}",
            f"Load of the brokers at the {name} matching ratio, mean over the seeds.",
            sorted_loads(place),
        )
        for place, name in enumerate(("lowest", "middle", "highest"))
    ),
    Figure("busiest", "Mean load and busiest broker at the middle matching ratio.", maxima),
)
