"""Figures 7.3, 7.5, 7.6 and 7.7 of the thesis, redrawn."""

from __future__ import annotations

from godwit.experiments.balance.claims import CLUSTER, HOMOGENEOUS, PLANETLAB, SIMULATION, on
from godwit.experiments.balance.figures import Pick, of_brokers, of_causes, of_runs
from godwit.lab.declaration import Figure, Results

NAMES = {
    SIMULATION: "simulation",
    CLUSTER: "heterogeneous cluster",
    HOMOGENEOUS: "homogeneous cluster",
    PLANETLAB: "PlanetLab",
}
#: Which loads the thesis draws of which platform, and the figure.
LOADS = (
    (CLUSTER, "input", "7.3a"), (SIMULATION, "input", "7.3b"),
    (CLUSTER, "output", "7.3c"), (SIMULATION, "output", "7.3d"),
    (PLANETLAB, "output", "7.3e"), (HOMOGENEOUS, "output", "7.3f"),
    (SIMULATION, "matching", ""), (CLUSTER, "matching", ""),
)  # fmt: skip
WORDS = {"input": "Ir", "output": "Or", "matching": "Matching delay", "clients": "Subscribers"}


def _runs(platform: str, settings: str = "default") -> Pick:
    def pick(results: Results) -> Results:
        return on(results.where(settings=settings), platform)

    return pick


def _load(platform: str, metric: str, number: str) -> Figure:
    thesis = f" (thesis, figure {number})" if number else ""
    return Figure(
        f"{platform}-{metric}",
        f"{WORDS[metric]} of each edge broker, {NAMES[platform]}{thesis}. The vertical line is the"
        " step of the rate.",
        of_brokers(metric, _runs(platform)),
    )


FIGURES = (
    *(_load(*row) for row in LOADS),
    *(_load(platform, "clients", "7.6") for platform in (CLUSTER, SIMULATION, PLANETLAB)),
    Figure(
        "delay", "Mean delivery delay (thesis, figure 7.5).",
        of_runs("delay_s", "s", {NAMES[name]: _runs(name) for name in NAMES if name != SIMULATION}),
    ),
    Figure(
        "delay-simulation", "... in the simulation (thesis, figure 7.5b).",
        of_runs("delay_s", "s", {NAMES[SIMULATION]: _runs(SIMULATION)}),
    ),
    Figure(
        "overhead", "Share of messages that are not publications of clients (thesis, figures 7.7a"
        " and b).",
        of_runs("overhead", "%", {NAMES[n]: _runs(n) for n in NAMES}, factor=100.0),
    ),
    Figure(
        "causes", "Overhead by what caused it, conventional PIE, simulation (thesis, figure 7.7c).",
        of_causes(_runs(SIMULATION)),
    ),
    Figure(
        "causes-adaptive", "... with Adaptive PIE (thesis, figure 7.7d).",
        of_causes(_runs(SIMULATION, "adaptive")),
    ),
    Figure(
        "pie", "Load information, conventional and adaptive, simulation.",
        of_runs(
            "pie_per_s", "messages/s",
            {"PIE": _runs(SIMULATION), "Adaptive PIE": _runs(SIMULATION, "adaptive")},
        ),
    ),
)  # fmt: skip
