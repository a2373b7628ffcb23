"""Figures for the report: size, style and file.  The experiment draws into the axes.

`lines` and `bars` help: a mark for the mean over seeds, and a whisker from the lowest seed to the
highest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from godwit.lab.declaration import Figure, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_IN, HEIGHT_IN, DOTS_PER_IN = 8.0, 4.5, 100
STYLE: dict[Any, Any] = {
    "font.size": 12,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "lines.linewidth": 2,
    "lines.markersize": 6,
    "errorbar.capsize": 4,
}

#: Distinguish lines that coincide, or that are printed without colours.
MARKERS, DASHES = "os^Dv", ("-", "--")


def save(figure: Figure, results: Results, path: Path) -> None:
    """Draw a figure into a PNG file.  The same results give the same bytes."""
    import matplotlib as mpl  # noqa: PLC0415  Takes a second; only reports need it.
    from matplotlib.figure import Figure as Canvas  # noqa: PLC0415

    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(WIDTH_IN, HEIGHT_IN), dpi=DOTS_PER_IN, layout="constrained")
        axes = canvas.add_subplot()
        figure.draw(axes, results)
        canvas.savefig(path, metadata={"Software": None})


def lines(
    axes: Axes, groups: Mapping[str, Results], *, x: str, y: str, factor: float = 1.0
) -> None:
    """A line for each group: the measure `y`, times `factor`, over the parameter `x`."""
    for number, (label, results) in enumerate(groups.items()):
        places, means, below, above = [], [], [], []
        for place, at in results.by(x):
            low, mean, high = (factor * number for number in _spread(at, y))
            places.append(float(place))
            means.append(mean)
            below.append(mean - low)
            above.append(high - mean)
        axes.errorbar(
            places,
            means,
            yerr=(below, above),
            marker=MARKERS[number % len(MARKERS)],
            linestyle=DASHES[number % len(DASHES)],
            label=label,
        )
    axes.legend()


def bars(
    axes: Axes, groups: Mapping[str, Results], measures: Mapping[str, str], *, factor: float = 1.0
) -> None:
    """For each measure (name -> label), a bar for each group."""
    width = 0.8 / len(groups)
    for number, (label, results) in enumerate(groups.items()):
        spreads = [_spread(results, name) for name in measures]
        places = [place + (number - (len(groups) - 1) / 2) * width for place in range(len(spreads))]
        means = [factor * mean for _, mean, _ in spreads]
        below = [factor * (mean - low) for low, mean, _ in spreads]
        above = [factor * (high - mean) for _, mean, high in spreads]
        axes.bar(places, means, width * 0.95, yerr=(below, above), label=label)
    axes.set_xticks(range(len(measures)), list(measures.values()))
    axes.grid(visible=False, axis="x")
    axes.legend()


def doubling(axes: Axes, places: Sequence[float]) -> None:
    """A logarithmic x axis of base 2 with these ticks."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.minorticks_off()


def logarithmic(axes: Axes) -> None:
    """A logarithmic y axis with ticks at 1, 2, 5, 10, 20 ..."""
    from matplotlib.ticker import LogLocator, NullLocator  # noqa: PLC0415

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())


def _spread(results: Results, name: str) -> tuple[float, float, float]:
    values = results.values(name)
    return min(values), results.mean(name), max(values)
