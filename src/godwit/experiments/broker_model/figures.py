"""Theory as curves, runs as marks with a whisker from the lowest seed to the highest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from godwit.experiments.broker_model import queueing_theory as theory
from godwit.experiments.broker_model.claims import below_one
from godwit.experiments.broker_model.runs import SERVICE_S
from godwit.lab.declaration import Figure, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MS_PER_S = 1000.0
LOAD = "load rho of the slower server"

#: Label, marker, colour.
RANDOM = ("engine, random arrivals", "o", "C0")
OUTPUT = ("output, random arrivals", "^", "C1")
EVEN = ("engine, even arrivals", "s", "C2")


def waiting(axes: Axes, results: Results) -> None:
    loads = [n / 200 for n in range(1, 193)]
    waits_ms = [theory.md1_wait_s(rho / SERVICE_S, SERVICE_S) * MS_PER_S for rho in loads]
    axes.plot(loads, waits_ms, color="black", linewidth=1, label="M/D/1")
    axes.plot((0, 1), (0, 0), color="black", linewidth=1, linestyle="--", label="D/D/1")
    engine = below_one(results.where(bottleneck="matching"))
    output = below_one(results.where(bottleneck="output"))
    random, even = engine.where(arrivals="poisson"), engine.where(arrivals="even")
    marks(axes, random, "input_wait_s", RANDOM, MS_PER_S)
    marks(axes, output, "output_wait_s", OUTPUT, MS_PER_S)
    marks(axes, even, "input_wait_s", EVEN, MS_PER_S)
    label(axes, LOAD, "mean wait (ms); service takes 1 ms")


def tail(axes: Axes, results: Results) -> None:
    loads = [n / 40 for n in range(1, 39)]
    waits_ms = [
        theory.md1_wait_s_quantile(0.99, rho / SERVICE_S, SERVICE_S) * MS_PER_S for rho in loads
    ]
    axes.plot(loads, waits_ms, color="black", linewidth=1, label="M/D/1 (Erlang)")
    random = below_one(results.where(bottleneck="matching", arrivals="poisson"))
    marks(axes, random, "input_wait_s_p99", RANDOM, MS_PER_S)
    axes.set_yscale("log")
    label(axes, LOAD, "99th percentile of the wait (ms)")


def utilisation(axes: Axes, results: Results) -> None:
    highest = max(float(run.case["rho"]) for run in results.runs)
    axes.plot((0, highest), (0, highest), color="black", linewidth=1, label="offered")
    axes.axvline(1, color="grey", linewidth=1, linestyle=":")
    random = results.where(arrivals="poisson")
    marks(axes, random.where(bottleneck="matching"), "input_utilisation", ("Ir", "o", "C0"))
    marks(axes, random.where(bottleneck="output"), "output_utilisation", ("Or", "^", "C1"))
    label(axes, LOAD, "utilisation that the meters show")


def saturation(axes: Axes, results: Results) -> None:
    loads = [0, 1, max(float(run.case["rho"]) for run in results.runs)]
    growths = [theory.growth_per_s(rho / SERVICE_S, SERVICE_S) for rho in loads]
    axes.plot(loads, growths, color="black", linewidth=1, label="lambda - mu")
    name = "queued_growth_per_s"
    engine = results.where(bottleneck="matching")
    marks(axes, engine.where(arrivals="poisson"), name, RANDOM)
    marks(axes, engine.where(arrivals="even"), name, EVEN)
    marks(axes, results.where(bottleneck="output"), name, OUTPUT)
    label(axes, LOAD, "growth of the queue (messages/s)")


def marks(
    axes: Axes, results: Results, name: str, how: tuple[str, str, str], factor: float = 1.0
) -> None:
    """The mean of a measure over the load, and from the lowest seed to the highest."""
    loads: list[float] = []
    means: list[float] = []
    whiskers: tuple[list[float], list[float]] = ([], [])
    for rho, at in results.by("rho"):
        values: Sequence[float] = at.values(name)
        loads.append(float(rho))
        means.append(at.mean(name) * factor)
        whiskers[0].append((at.mean(name) - min(values)) * factor)
        whiskers[1].append((max(values) - at.mean(name)) * factor)
    label, marker, colour = how
    axes.errorbar(
        loads, means, whiskers, linestyle="none", marker=marker, color=colour, label=label
    )


def label(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.legend()


FIGURES = (
    Figure(
        "waiting",
        "Mean wait over load. Curves are theory, marks are measured, from the lowest seed to"
        " the highest.",
        waiting,
    ),
    Figure("tail", "The wait that one publication in a hundred exceeds.", tail),
    Figure("utilisation", "Ir and Or over the load that is offered.", utilisation),
    Figure(
        "saturation",
        "Growth of the queue per second: what arrives and cannot be served.",
        saturation,
    ),
)
