"""Figures 13 (a, b) and 14 of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from godwit.lab.declaration import Figure, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _by_fanout(axes: Axes, results: Results) -> None:
    limited = results.where(limit="engine")
    for dataset, of_dataset in limited.by("dataset"):
        for strategy, runs in of_dataset.by("strategy"):
            points = sorted(
                (float(fanout), each.mean("delivered")) for fanout, each in runs.by("fanout")
            )
            if len(points) == 1:  # S0 does not depend on it.
                axes.axhline(points[0][1], linestyle=":", label=f"{dataset}, {strategy}")
            else:
                axes.plot(*zip(*points, strict=True), marker="o", label=f"{dataset}, {strategy}")
    axes.set_xlabel("fanout")
    axes.set_ylabel("deliveries")
    axes.set_ylim(bottom=0)
    axes.legend()


def _capped(axes: Axes, results: Results) -> None:
    found = [
        (str(strategy), runs.mean("delivered"))
        for strategy, runs in results.where(limit="uplink").by("strategy")
    ]
    bars = axes.bar(range(len(found)), [count for _, count in found])
    axes.bar_label(bars, fmt="{:,.0f}", padding=3)
    axes.set_xticks(range(len(found)), [name for name, _ in found])
    axes.set_ylabel("deliveries")


FIGURES = (
    Figure("fanout", "Deliveries of saturated brokers by fanout (figure 13).", _by_fanout),
    Figure("capped", "Deliveries with capped uplinks (figure 14).", _capped),
)
