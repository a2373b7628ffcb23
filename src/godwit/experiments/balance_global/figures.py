"""Figure 7.10 of the thesis, redrawn."""

from __future__ import annotations

from godwit.experiments.balance.claims import (
    CLUSTER,
    HOMOGENEOUS,
    PLANETLAB,
    RANDOM,
    SIMULATION,
    THESIS,
    on,
)
from godwit.experiments.balance.figures import Pick, of_brokers, of_runs
from godwit.lab.declaration import Figure, Results

NAMES = {SIMULATION: "simulation", CLUSTER: "heterogeneous cluster", PLANETLAB: "PlanetLab"}
LOADS = (
    (CLUSTER, "input", "7.10a"), (SIMULATION, "input", "7.10b"), (CLUSTER, "output", "7.10c"),
    (SIMULATION, "output", "7.10d"), (PLANETLAB, "output", "7.10e"),
)  # fmt: skip
WORDS = {"input": "Ir", "output": "Or", "clients": "Subscribers"}


def _runs(platform: str, joins: str = "one", algorithm: str = THESIS) -> Pick:
    def pick(results: Results) -> Results:
        return on(results, platform, overlay="chain", joins=joins, algorithm=algorithm)

    return pick


FIGURES = (
    *(
        Figure(
            f"{platform}-{metric}",
            f"{WORDS[metric]} of each cluster, mean, {NAMES[platform]} (thesis, figure {number}).",
            of_brokers(metric, _runs(platform), overlay="chain"),
        )
        for platform, metric, number in LOADS
    ),
    Figure(
        "simulation-clients", "Subscribers of each cluster, simulation.",
        of_brokers("clients", _runs(SIMULATION), overlay="chain"),
    ),
    Figure(
        "churn-output", "Or of each cluster under churn (thesis, figure 7.10f).",
        of_brokers("output", _runs(HOMOGENEOUS, "grouped"), overlay="chain"),
    ),
    Figure(
        "churn-output-random", "... under random offload.",
        of_brokers("output", _runs(HOMOGENEOUS, "grouped", RANDOM), overlay="chain"),
    ),
    Figure(
        "delay", "Mean delivery delay.",
        of_runs("delay_s", "s", {NAMES[name]: _runs(name) for name in NAMES}),
    ),
)  # fmt: skip
