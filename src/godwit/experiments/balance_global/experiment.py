"""`balance-global`: load balancing between the clusters of a chain (LS6)."""

from __future__ import annotations

from godwit.experiments.balance.balance_setup import SETUP, SHARED, cases
from godwit.experiments.balance.claims import (
    CLUSTER,
    HOMOGENEOUS,
    PLANETLAB,
    QUARTER,
    RANDOM,
    SIMULATION,
    SMALL,
    SMALL_ALIKE,
    THESIS,
)
from godwit.experiments.balance.measures import MEASURES, measure
from godwit.experiments.balance.runs import run
from godwit.experiments.balance_global.claims import CLAIMS
from godwit.experiments.balance_global.figures import FIGURES
from godwit.lab.declaration import Case, Experiment, Scale


def _churn(platform: str) -> list[Case]:
    return [
        case
        for algorithm in (THESIS, RANDOM)
        for case in cases((platform,), overlay="chain", joins="grouped", algorithm=algorithm)
    ]


MEDIUM = [
    *cases((PLANETLAB,)),
    *cases((PLANETLAB, QUARTER), overlay="chain"),
    *_churn(SMALL_ALIKE),
]
PAPER = [
    *cases((CLUSTER, PLANETLAB)),
    *cases((SIMULATION, CLUSTER, PLANETLAB), overlay="chain"),
    *_churn(HOMOGENEOUS),
]


EXPERIMENT = Experiment(
    name="balance-global",
    title="Load balancing between clusters",
    question=(
        "All subscribers join one broker of the first of four clusters. How does the load spread to"
        " the others, and how far?"
    ),
    setup=SETUP
    + """
The chain LS6: heads B10, B20, B30 and B40 with two edge brokers each. All publishers are at B10,
and all subscribers join B11. The brokers of *simulation* and *cluster* are those of table 7.4;
those of *planetlab* have a 25th of the bandwidth of *cluster*: the first cluster cannot carry all
load. Beside them the stars of `balance-local`, and churn (LS4, grouped) at all
eight edge brokers of the homogeneous cluster.
""",
    scales={
        "small": Scale(
            [*cases((SMALL,)), *cases((SMALL,), overlay="chain"), *_churn(SMALL_ALIKE)], seeds=1
        ),
        "medium": Scale(MEDIUM, seeds=1),
        "paper": Scale(PAPER, seeds=1),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
    shares=SHARED,
)
