"""A bar for each strategy, and distributions and curves with a line for each strategy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from godwit.experiments.mesh.claims import of
from godwit.experiments.mesh.mesh_setup import STRATEGIES
from godwit.lab import plots
from godwit.lab.curves import drawn
from godwit.lab.declaration import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Draw = Callable[["Axes", Results], None]


def strategies_of(results: Results) -> list[str]:
    return [each for each in STRATEGIES if any(r.case["strategy"] == each for r in results.runs)]


def by_strategy(measure: str, label: str, factor: float = 1.0) -> Draw:
    """A group of bars for each strategy, a bar for each dataset."""

    def draw(axes: Axes, results: Results) -> None:
        datasets = [str(dataset) for dataset, _ in results.by("dataset")]
        strategies = strategies_of(results)
        width = 0.8 / len(datasets)
        for number, dataset in enumerate(datasets):
            runs = [of(results, dataset, strategy).values(measure) for strategy in strategies]
            means = [factor * sum(values) / len(values) for values in runs]
            below = [m - factor * min(values) for m, values in zip(means, runs, strict=True)]
            above = [factor * max(values) - m for m, values in zip(means, runs, strict=True)]
            shift = (number - (len(datasets) - 1) / 2) * width
            places = [place + shift for place in range(len(strategies))]
            # Rounding may leave a whisker of less than nothing.
            whiskers = [[max(0.0, each) for each in side] for side in (below, above)]
            bars = axes.bar(places, means, width * 0.95, yerr=whiskers, label=dataset)
            axes.bar_label(bars, fmt="{:,.3g}", padding=3, fontsize=9)
        axes.set_xticks(range(len(strategies)), strategies)
        axes.set_ylabel(label)
        axes.grid(visible=False, axis="x")
        axes.legend()

    return draw


def curves(dataset: str, name: str, x_label: str, y_label: str, *, x_factor: float = 1.0) -> Draw:
    """A line for each strategy: a curve of one dataset."""

    def draw(axes: Axes, results: Results) -> None:
        results.where(dataset=dataset)
        for number, strategy in enumerate(strategies_of(results)):
            found = drawn(of(results, dataset, strategy), name)
            axes.plot(
                [x_factor * place for place, _ in found],
                [point for _, point in found],
                marker=plots.MARKERS[number % len(plots.MARKERS)],
                linestyle=plots.DASHES[number % len(plots.DASHES)],
                label=strategy,
            )
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.set_ylim(bottom=0)
        axes.legend()

    return draw
