"""Curves over time: loads, subscribers, delays and overhead, as in figures 7.3 to 7.7 and 7.10."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from godwit.experiments.balance.claims import HOMOGENEOUS, PLANETLAB, SIMULATION, on, scene
from godwit.experiments.balance.load_measures import OVERLOAD, bucket_s_of
from godwit.experiments.balance.measures import CHAIN, STAR
from godwit.lab import plots
from godwit.lab.curves import drawn
from godwit.lab.declaration import Figure, NotMeasuredError, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Draw = Callable[["Axes", Results], None]
Pick = Callable[[Results], Results]
PLATFORMS: Mapping[str, Pick] = {
    "homogeneous cluster": lambda results: on(results, HOMOGENEOUS),
    "simulation": lambda results: on(results, SIMULATION),
    "PlanetLab": lambda results: on(results, PLANETLAB),
}
LABELS = {
    "input": "input utilisation Ir",
    "output": "output utilisation Or",
    "matching": "matching delay d / 0.1 s",
    "clients": "subscribers",
}
CAUSES = {
    "migration_per_s": "subscriptions of moves",
    "pie_per_s": "load information (PIE)",
    "coordination_per_s": "coordination",
    "request_per_s": "subscriptions of balancers",
}


def of_brokers(metric: str, pick: Pick, *, overlay: str = "star") -> Draw:
    """A curve for each edge broker of a star, or for each cluster of a chain."""
    places = STAR if overlay == "star" else CHAIN

    def draw(axes: Axes, results: Results) -> None:
        found = pick(results)
        for number, place in enumerate(places):
            label = place if overlay == "star" else f"{place[:-1]}x"
            _plot(axes, found, f"{metric}_{place}", label, number)
        _finish(axes, found, LABELS[metric])
        if metric in ("input", "output"):
            axes.axhline(OVERLOAD, color="grey", linewidth=1, linestyle=":")

    return draw


def of_runs(name: str, label: str, picks: Mapping[str, Pick], *, factor: float = 1.0) -> Draw:
    """One curve for each of several runs."""

    def draw(axes: Axes, results: Results) -> None:
        found = _measured(results, picks)
        for number, (text, some) in enumerate(found.items()):
            _plot(axes, some, name, text, number, factor=factor)
        _finish(axes, next(iter(found.values())), label)

    return draw


def _measured(results: Results, picks: Mapping[str, Pick]) -> dict[str, Results]:
    """Those that the scale has; at least one."""
    found = {}
    for text, pick in picks.items():
        with suppress(NotMeasuredError):
            found[text] = pick(results)
    if not found:
        raise NotMeasuredError("no run has this curve")
    return found


def of_causes(pick: Pick, names: Sequence[str] = tuple(CAUSES)) -> Draw:
    """Overhead messages by what caused them."""

    def draw(axes: Axes, results: Results) -> None:
        found = pick(results)
        for number, name in enumerate(names):
            _plot(axes, found, name, CAUSES[name], number)
        _finish(axes, found, "messages/s that brokers take in")

    return draw


def _plot(
    axes: Axes, found: Results, name: str, label: str, number: int, *, factor: float = 1.0
) -> None:
    bucket_s, until_s = bucket_s_of(scene(found)), scene(found).until_s
    # Then no client publishes any more.
    curve = [(at, value) for at, value in drawn(found, name) if (at + 1) * bucket_s <= until_s]
    if not curve:
        raise NotMeasuredError(f"no run has the curve {name}")
    axes.plot(
        [(at + 0.5) * bucket_s for at, _ in curve],
        [factor * value for _, value in curve],
        linestyle=("-", "--", "-.", ":")[number % 4],
        label=label,
    )


def _finish(axes: Axes, found: Results, label: str) -> None:
    played = scene(found)
    if played.has_step:
        axes.axvline(played.step_s, color="grey", linewidth=1)
    axes.set_xlabel("s")
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
    axes.legend()


def growing(parameter: str, number: str) -> tuple[Figure, ...]:
    """Load and delay over a number of edge brokers or clusters; `number` is of the figure."""
    return (
        Figure(
            "output", f"Mean Or of the edge brokers (thesis, figure {number}).",
            _over("output_mean_before", parameter, "output utilisation Or"),
        ),
        Figure(
            "delay", f"Mean delivery delay (thesis, figure {number}).",
            _over("delay_before_s", parameter, "s"),
        ),
    )  # fmt: skip


def _over(measure: str, parameter: str, label: str) -> Draw:
    """A line for each platform."""

    def draw(axes: Axes, results: Results) -> None:
        plots.lines(axes, _measured(results, PLATFORMS), x=parameter, y=measure)
        axes.set_xlabel(parameter)
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)

    return draw
