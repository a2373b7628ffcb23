"""`mesh-forwarders`: brokers that only forward, by strategy (setup PS1 of Publiy)."""

from __future__ import annotations

from godwit.experiments.mesh.measures import MEASURES, measure
from godwit.experiments.mesh.mesh_setup import SETUP, STRATEGIES, cases
from godwit.experiments.mesh.runs import run
from godwit.experiments.mesh_forwarders.claims import CLAIMS
from godwit.experiments.mesh_forwarders.figures import FIGURES
from godwit.lab.declaration import Experiment, Scale

EXPERIMENT = Experiment(
    name="mesh-forwarders",
    title="A mesh: brokers that only forward",
    question=(
        "In a tree a publication passes brokers that have no subscriber for it. How many of these"
        " does a mesh spare, and how much traffic?"
    ),
    setup=SETUP,
    scales={
        "small": Scale(cases(31, 300, ("DT1", "DT2"), STRATEGIES), seeds=1),
        "paper": Scale(cases(120, 1_200, ("DT1", "DT2"), STRATEGIES), seeds=1),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
    shares="mesh",
)
