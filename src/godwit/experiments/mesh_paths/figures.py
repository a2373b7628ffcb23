"""Figures 1, 9 and 10 of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from godwit.experiments.mesh.figures import by_strategy, curves
from godwit.lab.curves import drawn
from godwit.lab.declaration import Figure, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _paths(axes: Axes, results: Results) -> None:
    for brokers, of_size in results.where(dataset="DT1", strategy="S2").by("brokers"):
        found = drawn(of_size, "paths")
        axes.plot(
            [2**n for n, _ in found], [100 * share for _, share in found],
            marker="o", label=f"{brokers} brokers",
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlabel("paths between two brokers, at least")
    axes.set_ylabel("pairs of brokers, %")
    axes.set_ylim(bottom=0)
    axes.legend()


FIGURES = (
    Figure("paths", "Paths between two brokers, S2 (figure 1).", _paths),
    *(
        Figure(
            f"hops-{dataset}",
            f"Share of deliveries over at most so many links, {dataset} (figure 9).",
            curves(dataset, "hops", "links between publisher and subscriber", "share"),
        )
        for dataset in ("DT1", "DT2")
    ),
    Figure(
        "delay", "Mean delay of a delivery (figure 10).",
        by_strategy("delay_s_mean", "delivery delay, ms", 1000.0),
    ),
)  # fmt: skip
