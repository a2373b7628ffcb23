"""Figure 7.8 of the thesis, redrawn."""

from __future__ import annotations

from godwit.experiments.balance.claims import HOMOGENEOUS, PLANETLAB, SIMULATION, on
from godwit.experiments.balance.figures import Pick, over
from godwit.lab.declaration import Figure

PLATFORMS: dict[str, Pick] = {
    "homogeneous cluster": lambda results: on(results, HOMOGENEOUS),
    "simulation": lambda results: on(results, SIMULATION),
    "PlanetLab": lambda results: on(results, PLANETLAB),
}

FIGURES = (
    Figure(
        "output", "Mean Or of the edge brokers (thesis, figures 7.8a and b).",
        over("output_mean_before", "edges", "output utilisation Or", PLATFORMS),
    ),
    Figure(
        "delay", "Mean delivery delay (thesis, figure 7.8).",
        over("delay_before_s", "edges", "s", PLATFORMS),
    ),
)  # fmt: skip
