"""Figures 7.4, 7.5d and 7.6 of the thesis, redrawn."""

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


def _runs(platform: str, algorithm: str) -> Pick:
    def pick(results: Results) -> Results:
        return on(results, platform, algorithm=algorithm)

    return pick


def _beside(platform: str) -> dict[str, Pick]:
    return {"random": _runs(platform, RANDOM), "proposed": _runs(platform, THESIS)}


FIGURES = (
    Figure(
        "homogeneous-output", "Or of each edge broker under random offload, homogeneous cluster"
        " (thesis, figure 7.4a).",
        of_brokers("output", _runs(HOMOGENEOUS, RANDOM)),
    ),
    Figure(
        "homogeneous-output-proposed", "... under the proposed algorithms.",
        of_brokers("output", _runs(HOMOGENEOUS, THESIS)),
    ),
    Figure(
        "planetlab-output", "Or under random offload, PlanetLab (thesis, figure 7.4b).",
        of_brokers("output", _runs(PLANETLAB, RANDOM)),
    ),
    Figure(
        "cluster-output", "Or under random offload, heterogeneous cluster.",
        of_brokers("output", _runs(CLUSTER, RANDOM)),
    ),
    Figure(
        "simulation-output", "Or under random offload, simulation.",
        of_brokers("output", _runs(SIMULATION, RANDOM)),
    ),
    Figure(
        "homogeneous-clients", "Subscribers of each edge broker under random offload, homogeneous"
        " cluster (thesis, figure 7.6d).",
        of_brokers("clients", _runs(HOMOGENEOUS, RANDOM)),
    ),
    Figure(
        "homogeneous-clients-proposed", "... under the proposed algorithms (thesis, figure 7.6b).",
        of_brokers("clients", _runs(HOMOGENEOUS, THESIS)),
    ),
    Figure(
        "planetlab-delay", "Mean delivery delay, PlanetLab (thesis, figure 7.5d).",
        of_runs("delay_s", "s", _beside(PLANETLAB)),
    ),
    Figure(
        "cluster-delay", "Mean delivery delay, heterogeneous cluster.",
        of_runs("delay_s", "s", _beside(CLUSTER)),
    ),
)  # fmt: skip
