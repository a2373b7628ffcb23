"""`balance-edges`: how local load balancing scales with the number of edge brokers (LS5)."""

from __future__ import annotations

from godwit.experiments.balance.balance_setup import SETUP, SHARED, cases
from godwit.experiments.balance.claims import HOMOGENEOUS, PLANETLAB, SIMULATION, SMALL_ALIKE
from godwit.experiments.balance.figures import growing
from godwit.experiments.balance.measures import MEASURES, measure
from godwit.experiments.balance.runs import run
from godwit.experiments.balance_edges.claims import CLAIMS
from godwit.lab.declaration import Case, Experiment, Scale


def _stars(platform: str, *edges: int) -> list[Case]:
    return [case for number in edges for case in cases((platform,), edges=number)]


MEDIUM = [
    *_stars(PLANETLAB, 2, 4, 6, 8),
    *_stars(HOMOGENEOUS, 2, 5, 8),
]
PAPER = [
    *_stars(HOMOGENEOUS, 2, 3, 5, 8),
    *_stars(PLANETLAB, 2, 3, 4, 5, 6, 8, 10),
    *_stars(SIMULATION, 2, 5, 8),
]


EXPERIMENT = Experiment(
    name="balance-edges",
    title="Load balancing with more edge brokers",
    question="How do load and delay fall as edge brokers are added to a cluster?",
    setup=SETUP
    + """
A star (LS5) with more and more edge brokers: equal ones, except on PlanetLab, where the four of
`balance-local` are repeated. There is no step of the rate; late is the last part of the run, which
ends after 2,500 s.
""",
    scales={
        "small": Scale(_stars(SMALL_ALIKE, 2, 5, 8), seeds=1),
        "medium": Scale(MEDIUM, seeds=1),
        "paper": Scale(PAPER, seeds=1),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=growing("edges", "7.8"),
    shares=SHARED,
)
