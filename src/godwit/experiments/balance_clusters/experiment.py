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
    *_chains(SMALL_ALIKE, 1, 2, 4, 6),
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
are at the first head, all subscribers join its first edge broker. The rate stays as it is;
late is the last part of the run, which ends after 2,500 s, on *small-alike* after 1,700 s.
""",
    scales={
        "small": Scale(_chains(SMALL_ALIKE, 1, 3, 5), seeds=1),
        "medium": Scale(MEDIUM, seeds=1),
        "paper": Scale(PAPER, seeds=1),
    },
    remarks="""\
The page has one seed, and the scale *medium*: PlanetLab with four sizes, and *small-alike* instead
of the homogeneous cluster. The simulation and the homogeneous cluster were not run.

On *small-alike* the load stops at the fourth cluster: with six the clusters have a mean Or of 0.32,
0.22, 0.15, 0.12, 0 and 0, because the difference of 0.12 is less than the global trigger of 0.15.
The delay is 0.160 s with one cluster, 0.061 s with four and 0.063 s with six. That mean Or falls
from four to six is the mean over brokers that have no load.

On PlanetLab the delay hardly changes (0.186 to 0.198 s), as in the thesis.
""",
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=growing("clusters", "7.11"),
    shares=SHARED,
)
