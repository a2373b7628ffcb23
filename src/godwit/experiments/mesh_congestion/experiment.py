"""`mesh-congestion`: slow uplinks of 21 brokers (setup PS5 of Publiy)."""

from __future__ import annotations

from godwit.experiments.mesh.limited import MEASURES, measure, run
from godwit.experiments.mesh_congestion.claims import CLAIMS, LIMIT
from godwit.experiments.mesh_congestion.figures import FIGURES
from godwit.lab.declaration import Case, Experiment, Scale

BROKERS = 21


def cases(subscriptions: int) -> list[Case]:
    return [
        {
            "brokers": BROKERS,
            "dataset": dataset,
            "subscriptions": subscriptions,
            "rate": 3300,
            "fanout": 20,
            "strategy": strategy,
            "limit": limit,
        }
        for dataset in ("DT4", "DT5")
        for strategy, limit in (("S0", "none"), ("S0", LIMIT), ("S1", LIMIT), ("S2", LIMIT))
    ]


EXPERIMENT = Experiment(
    name="mesh-congestion",
    title="A mesh: slow uplinks",
    question="Which strategies deliver everything over slow uplinks, and which are congested?",
    setup="""\
21 brokers in a balanced tree, each with three links at most, 3,300 publications a minute, and
outputs of 10,000 bytes a second, subscribers included, as in the paper's runs on PlanetLab (setup
PS5). Its matching tables and the size of its publications are lost: DT4 is sparse (1.7 matching
brokers), DT5 dense (5.0), and a publication has 300 bytes. The size was chosen so that S0 is
congested in DT4, as the paper reports; what S1 and S2 deliver then, and all of DT5, follows. Soft
links are opened for 60 s without a limit; deliveries are counted in the 120 s after that. The order
of publications is not kept, as in the paper.
""",
    scales={"small": Scale(cases(200), seeds=1), "paper": Scale(cases(1_200), seeds=1)},
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
    shares="mesh",
)
