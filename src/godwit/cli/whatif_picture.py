"""A rehearsal as a picture: figures before and after, and the load of each broker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas

from godwit.errors import UsageError
from godwit.rehearsal.rehearsing import RehearsalReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from godwit.rehearsal.network_figures import NetworkFigures

#: The same report gives the same bytes.
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "svg.hashsalt": "godwit",
    "svg.fonttype": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.axisbelow": True,
}
WIDTH_IN, HEIGHT_IN = 10.0, 7.0
#: Panels: the figure, its title, and what a value is multiplied by.
PANELS = (
    ("messages_per_s", "messages at brokers, per second", 1.0),
    ("hops", "hops of a delivery, mean", 1.0),
    ("delay_mean_s", "delay, mean, ms", 1e3),
)
MEASURED = "measured"


def draw_report(report: RehearsalReport, path: Path) -> None:
    columns = {MEASURED: report.measured, "before": report.before}
    columns |= {each.change: each.after for each in report.outcomes}
    moves = {each.change: float(each.moves) for each in report.outcomes}
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(WIDTH_IN, HEIGHT_IN), layout="constrained")
        grid = canvas.add_gridspec(2, 4)
        for place, (field, title, factor) in enumerate(PANELS):
            axes = canvas.add_subplot(grid[0, place])
            values = {name: factor * getattr(each, field) for name, each in columns.items()}
            _bars(axes, values, title)
            _error(axes, report, field, factor)
        _bars(canvas.add_subplot(grid[0, 3]), moves, "clients that move")
        _loads(canvas.add_subplot(grid[1, :]), columns)
        try:
            canvas.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else {})
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from None


def _colours(count: int) -> list[Any]:
    return [mpl.colormaps["tab10"](number % 10) for number in range(count)]


def _bars(axes: Axes, values: dict[str, float], title: str) -> None:
    axes.set_title(title)
    places = list(range(len(values)))
    first = 0 if MEASURED in values else 2
    axes.bar(places, list(values.values()), color=_colours(first + len(values))[first:])
    axes.set_xticks(places, list(values), rotation=30, ha="right")


def _error(axes: Axes, report: RehearsalReport, field: str, factor: float) -> None:
    """A whisker on every simulated bar: as much as the unchanged simulation is off."""
    error = abs(report.error[field] or 0.0)
    simulated = [report.before, *(each.after for each in report.outcomes)]
    values = [factor * getattr(each, field) for each in simulated]
    axes.errorbar(
        [1 + place for place in range(len(values))],
        values,
        yerr=[error * value for value in values],
        fmt="none",
        ecolor="0.2",
        capsize=4,
    )


def _loads(axes: Axes, columns: dict[str, NetworkFigures]) -> None:
    names = sorted({name for each in columns.values() for name in each.brokers})
    width = 0.8 / len(columns)
    for number, ((label, figures), colour) in enumerate(
        zip(columns.items(), _colours(len(columns)), strict=True)
    ):
        heights = []
        for name in names:
            each = figures.brokers.get(name)
            load = 0.0 if each is None else max(each.input_utilisation, each.output_utilisation)
            heights.append(load)
        places = [place + number * width for place in range(len(names))]
        axes.bar(places, heights, width=width, label=label, color=colour)
    axes.axhline(1.0, color="#d62728", linewidth=1, linestyle="--")
    axes.set_title("load of each broker: the higher one of its two utilisations")
    axes.set_xticks([place + 0.4 - width / 2 for place in range(len(names))], names)
    axes.legend(frameon=False)
