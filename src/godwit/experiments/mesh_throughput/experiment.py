"""`mesh-throughput`: saturated brokers and uplinks (setups PS3 and PS4 of Publiy)."""

from __future__ import annotations

from collections.abc import Sequence

from godwit.experiments.mesh.limited import MEASURES, measure, run
from godwit.experiments.mesh_throughput.claims import CLAIMS
from godwit.experiments.mesh_throughput.figures import FIGURES
from godwit.lab.declaration import Case, Experiment, Scale

FANOUTS = (5, 15, 35)


def cases(brokers: int, subscriptions: int, datasets: Sequence[str]) -> list[Case]:
    def case(dataset: str, strategy: str, fanout: int, limit: str) -> Case:
        return {
            "brokers": brokers,
            "dataset": dataset,
            "subscriptions": subscriptions,
            "rate": 7200,
            "fanout": fanout,
            "strategy": strategy,
            "limit": limit,
        }

    return [
        *(
            case(dataset, strategy, fanout, "engine")
            for dataset in datasets
            for strategy in ("S2", "SH")
            for fanout in FANOUTS
        ),
        *(case(dataset, "S0", FANOUTS[-1], "engine") for dataset in datasets),
        *(case(datasets[0], strategy, FANOUTS[-1], "uplink") for strategy in ("S0", "S2", "SH")),
    ]


EXPERIMENT = Experiment(
    name="mesh-throughput",
    title="A mesh: throughput of saturated brokers",
    question=(
        "In a tree all that is published passes the brokers in the middle, until they cannot take"
        " more. How much more do brokers deliver in a mesh, and what if their uplinks are the"
        " bottleneck?"
    ),
    setup="""\
The network of mesh-paths. 7,200 publications a minute; for PS3 this is a tenth of the paper's rate,
and an engine takes 20 ms for a publication, so that the brokers in the middle of the tree are asked
for more than they can do, as in the paper; it does not state their capacity. For PS4 it is the
paper's rate, and the output of a broker takes 150 publications a second, subscribers included.
Soft links are opened for 60 s without a limit; then the limit holds for 120 s, in which deliveries
are counted. The order of publications is not kept (`order = "none"`), as in the paper.

Scaled: 1,200 subscriptions (the paper: 6,500), and three fanouts.
""",
    scales={
        "small": Scale(cases(31, 300, ("DT1",)), seeds=1),
        "paper": Scale(cases(120, 1_200, ("DT1", "DT2")), seeds=1),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
    shares="mesh",
)
