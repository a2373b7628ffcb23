"""`balance-clusters`: how global load balancing scales with the number of clusters (LS7)."""

from __future__ import annotations

from godwit.experiments.balance.balance_setup import SETUP, SHARED, cases
from godwit.experiments.balance.claims import HOMOGENEOUS, PLANETLAB, SIMULATION, SMALL_ALIKE
from godwit.experiments.balance.figures import growing
from godwit.experiments.balance.measures import MEASURES, measure
from godwit.experiments.balance.runs import run
from godwit.experiments.balance_clusters.claims import CLAIMS
from godwit.lab.declaration import Case, Experiment, Scale


def _chains(platform: str, *clusters: int) -> list[Case]:
    return [
        case for number in clusters for case in cases((platform,), overlay="chain", clusters=number)
    ]


MEDIUM = [
    *_chains(PLANETLAB, 1, 2, 4, 6),
    *_chains(HOMOGENEOUS, 4, 6),
]
PAPER = [
    *_chains(HOMOGENEOUS, 1, 2, 4, 6),
    *_chains(PLANETLAB, 1, 2, 3, 4, 5, 6, 8),
    *_chains(SIMULATION, 2, 4, 6),
]


EXPERIMENT = Experiment(
    name="balance-clusters",
    title="Load balancing with more clusters",
    question="How do load and delay change as clusters are added to a chain?",
    setup=SETUP
    + """
A chain of clusters (LS7) with two edge brokers each, equal ones except on PlanetLab. All publishers
are at the first head, all subscribers join its first edge broker. There is no step of the rate;
late is the last part of the run, which ends after 2,500 s.
""",
    scales={
        "small": Scale(_chains(SMALL_ALIKE, 1, 3, 5), seeds=1),
        "medium": Scale(MEDIUM, seeds=1),
        "paper": Scale(PAPER, seeds=1),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=growing("clusters", "7.11"),
    shares=SHARED,
)
