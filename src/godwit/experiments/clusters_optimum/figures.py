"""Measured traffic over the number of clusters, and equation (1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from godwit.experiments.clusters_optimum.claims import load_of, traffic_of
from godwit.lab.declaration import Figure, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def sweep(axes: Axes, results: Results) -> None:
    for number, (partition, runs) in enumerate(results.by("partition")):
        colour, load = f"C{number}", load_of(runs.runs[0])
        found = sorted((int(run.case["clusters"]), traffic_of(run)) for run in runs.runs)
        axes.plot(*zip(*found, strict=True), "o", color=colour, label=f"{partition}, measured")
        numbers = range(1, load.brokers + 1)
        axes.plot(numbers, [load.traffic(m) for m in numbers], "-", color=colour, linewidth=1)
        axes.axvline(load.optimum, color=colour, linestyle=":", linewidth=1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("clusters")
    axes.set_ylabel("messages between brokers")
    axes.legend()


FIGURES = (
    Figure(
        "traffic",
        "Messages between brokers; lines are equation (1), dotted ones m*.",
        sweep,
    ),
)
