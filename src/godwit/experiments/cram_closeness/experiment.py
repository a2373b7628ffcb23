"""`cram-closeness`: what the metric that CRAM clusters by changes."""

from __future__ import annotations

from godwit.experiments.allocation.claims import INTERSECT, IOS, IOU, XOR
from godwit.experiments.allocation.scales import SETUP, cases
from godwit.experiments.cram_closeness.claims import CLAIMS
from godwit.experiments.cram_closeness.figures import FIGURES
from godwit.experiments.cram_closeness.measures import MEASURES, measure
from godwit.experiments.cram_closeness.runs import CLUSTERS, DEPLOYED, run
from godwit.lab.declaration import Case, Experiment, Scale

METRICS = (INTERSECT, XOR, IOS, IOU)


def _cases(brokers: int, equal: int, unequal: int, few: int) -> list[Case]:
    return [
        *cases(brokers, "equal", (equal,), METRICS, study=DEPLOYED),
        *cases(brokers, "unequal", (unequal,), METRICS, study=DEPLOYED),
        *cases(brokers, "equal", (few,), (XOR, IOU), study=CLUSTERS),
    ]


def _always(_case: Case) -> bool:
    """Plans are timed."""
    return True


EXPERIMENT = Experiment(
    name="cram-closeness",
    title="CRAM: INTERSECT, XOR, IOS, IOU",
    question="CRAM merges the closest subscriptions. What does the metric of closeness change?",
    setup=SETUP
    + """
*Deployed*: as in `allocation-homogeneous` and `allocation-heterogeneous`, with the four metrics.
*Clusters*: a plan for 2,000 subscriptions, without deployment; its clusters are looked at. Times
are CPU times of the machine.
""",
    scales={
        "small": Scale(_cases(16, 400, 200, 200), seeds=1),
        "paper": Scale(_cases(80, 8000, 4100, 2000), seeds=1),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
    alone=_always,
)
