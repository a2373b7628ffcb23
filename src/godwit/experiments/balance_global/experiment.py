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
    remarks="""\
The page has one seed, and the scale *medium*: PlanetLab, *quarter* instead of the simulation, and
churn on *small-alike*. The clusters of machines were not run.

On *quarter* the load of B11 has spread over all clusters after about 2,600 s: 0.51, 0.47, 0.43 and
0.29 from the first to the fourth, and 0.74, 0.67, 0.60 and 0.57 at the end, after the step.

Three rules were changed after a look at first numbers: *L1 global*, L33 and L34 asked for the time
before the step of the rate. On PlanetLab that is at 1,000 s, when load has only reached the second
cluster.

The first run showed a defect: a global session counted sessions that found nothing to move, and was
kept open by them for all of its 20 rounds, while the next two clusters waited. Since it ends after
three rounds in which no client moves, the fourth cluster has its first subscriber after 1,510 s
instead of 2,240 s, and at the end the clusters have 0.73, 0.52, 0.52 and 0.47 instead of 0.79,
0.54, 0.52 and 0.33.

L33: 4,318 s on *quarter* and 3,175 s on PlanetLab, by the last session in which a client moved. The
curves of *quarter* do not change any more 1,200 s after the fourth cluster has its first
subscriber. On PlanetLab the brokers vary by 5%, and a single subscriber moves now and then.

L35: on PlanetLab B11 is overloaded while subscribers join, and no longer at the end. B12 then has
an Or of 0.9 to 0.95 with three subscribers, and says that it cannot be balanced: each step would
bring the other broker above 0.9. A subscriber of all quotes takes more than half of its line (2.6
of 4.7 kB/s). That is our choice of bandwidth, a 25th of the cluster's.
""",
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
    shares=SHARED,
)
