"""`mesh-paths`: paths between brokers, and their lengths, by strategy (setup PS1 of Publiy)."""

from __future__ import annotations

from godwit.experiments.mesh.measures import MEASURES, measure
from godwit.experiments.mesh.mesh_setup import SETUP, STRATEGIES, cases
from godwit.experiments.mesh.runs import run
from godwit.experiments.mesh_paths.claims import CLAIMS
from godwit.experiments.mesh_paths.figures import FIGURES
from godwit.lab.declaration import Experiment, Scale

EXPERIMENT = Experiment(
    name="mesh-paths",
    title="A mesh: paths of publications",
    question=(
        "Soft links give brokers a choice of paths. How many are there, and how much shorter and"
        " faster do publications travel with each strategy?"
    ),
    setup=SETUP,
    scales={
        "small": Scale(cases(31, 300, ("DT1", "DT2"), STRATEGIES), seeds=1),
        "paper": Scale(cases(120, 1_200, ("DT1", "DT2"), STRATEGIES), seeds=1),
        "large": Scale(cases(250, 1_200, ("DT1",), ("S2",)), seeds=1),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
    shares="mesh",
)
