"""`allocation-steps`: what clustering, a new tree and moved publishers each contribute."""

from __future__ import annotations

from godwit.experiments.allocation.measures import MEASURES, measure
from godwit.experiments.allocation.runs import run
from godwit.experiments.allocation.scales import SETUP, cases
from godwit.experiments.allocation_steps.claims import CLAIMS, STEPS
from godwit.experiments.allocation_steps.figures import FIGURES
from godwit.lab.declaration import Case, Experiment, Scale


def _steps(brokers: int, capacity: str, subscriptions: int) -> list[Case]:
    return [
        case
        for algorithm, publishers in STEPS.values()
        for case in cases(brokers, capacity, (subscriptions,), (algorithm,), publishers=publishers)
    ]


EXPERIMENT = Experiment(
    name="allocation-steps",
    title="Broker allocation, step by step",
    question=(
        "A plan clusters subscriptions, builds a new tree and moves publishers. What does each step"
        " contribute?"
    ),
    setup=SETUP
    + """
*MANUAL + GRAPE* is the network as it is, with GRAPE (load 100%) in its brokers: it traces 100
publications of each publisher (thesis: 1,000; small: 35) before it moves it. *PAIRWISE-N* clusters
only. *CRAM-IOU, publishers at the root* does not move publishers after the tree is built.
""",
    scales={
        "small": Scale([*_steps(16, "equal", 400), *_steps(16, "unequal", 200)], seeds=1),
        "paper": Scale([*_steps(80, "equal", 8000), *_steps(80, "unequal", 4100)], seeds=1),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
)
