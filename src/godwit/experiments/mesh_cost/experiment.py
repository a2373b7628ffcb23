"""`mesh-cost`: covering sets and times of a broker by its number of links (setup PS2 of Publiy)."""

from __future__ import annotations

from godwit.experiments.mesh_cost.claims import CLAIMS
from godwit.experiments.mesh_cost.figures import FIGURES
from godwit.experiments.mesh_cost.measures import MEASURES, measure
from godwit.experiments.mesh_cost.runs import run
from godwit.lab.declaration import Case, Experiment, Scale

FANOUTS = (5, 10, 15, 20)


def cases(brokers: int, subscriptions: int) -> list[Case]:
    return [
        {
            "brokers": brokers,
            "dataset": "DT-C",
            "subscriptions": subscriptions,
            "rate": 3600,
            "fanout": fanout,
            "strategy": "S2",
        }
        for fanout in FANOUTS
    ]


EXPERIMENT = Experiment(
    name="mesh-cost",
    title="A mesh: what links cost a broker",
    question=(
        "The more links a broker has, the less its subscriptions cover each other. How much more"
        " does it store and evaluate, and how long do its updates and decisions take?"
    ),
    setup="""\
A balanced tree in which a broker has three links, and subscriptions that cover each other (DT-C,
with its share of matching brokers). Brokers open soft links for 60 s under 3,600 publications a
minute, with S2 and a fanout of 5, 10, 15 or 20. Then covering sets by link are computed from their
tables, and 50 publications are evaluated against them. Times are CPU time, the shortest of five.

Scaled: 120 brokers and 1,200 subscriptions (the paper: 500 brokers, configuration C3). Brokers here
do not match by going through covering sets; the sets and evaluations are the paper's measure.
""",
    scales={
        "small": Scale(cases(31, 200), seeds=1),
        "paper": Scale(cases(120, 1_200), seeds=1),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
)
