"""`balance-churn`: load balancing while subscribers come and go (LS4)."""

from __future__ import annotations

from godwit.experiments.balance.balance_setup import SETUP, SHARED, cases
from godwit.experiments.balance.claims import HOMOGENEOUS, RANDOM, SMALL_ALIKE, THESIS
from godwit.experiments.balance.measures import MEASURES, measure
from godwit.experiments.balance.runs import run
from godwit.experiments.balance_churn.claims import CLAIMS, KINDS
from godwit.experiments.balance_churn.figures import FIGURES
from godwit.lab.declaration import Case, Experiment, Scale


def _all(platform: str) -> list[Case]:
    return [
        case
        for joins in KINDS
        for algorithm in (THESIS, RANDOM)
        for settings in ("default", "adaptive")
        for case in cases((platform,), joins=joins, algorithm=algorithm, settings=settings)
    ]


EXPERIMENT = Experiment(
    name="balance-churn",
    title="Load balancing under churn",
    question=(
        "Subscribers come and go all the time. Does balancing stay stable, does it disturb"
        " deliveries, and what does load information cost?"
    ),
    setup=SETUP
    + """
Churn (LS4) in the star of the homogeneous cluster: 60 subscribers join every minute, each stays
7 to 14 minutes. *Grouped*: all joins of a minute go to the same random edge broker; *individual*:
each to a random one. On the platform *small-alike* 15 join every minute. There is no step of the
rate; late is the last part of the run.
""",
    scales={
        "small": Scale(_all(SMALL_ALIKE), seeds=1),
        "paper": Scale(_all(HOMOGENEOUS), seeds=1),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
    shares=SHARED,
)
