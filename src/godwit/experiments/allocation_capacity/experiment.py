"""`allocation-capacity`: plans for brokers of other capacities."""

from __future__ import annotations

from collections.abc import Sequence

from godwit.experiments.allocation.claims import (
    AUTOMATIC,
    BIN_PACKING,
    FBF,
    IOU,
    PAIRWISE_K,
    XOR,
)
from godwit.experiments.allocation.scales import SETUP, cases
from godwit.experiments.allocation_capacity.claims import CLAIMS
from godwit.experiments.allocation_capacity.figures import FIGURES
from godwit.experiments.cram_cost.measures import MEASURES, measure
from godwit.experiments.cram_cost.runs import PLAN, run
from godwit.lab.declaration import Case, Experiment, Scale

ALGORITHMS = (AUTOMATIC, PAIRWISE_K, FBF, BIN_PACKING, IOU, XOR)


def _cases(brokers: int, subscriptions: int, usable_per_s: Sequence[float]) -> list[Case]:
    return [
        case
        for each in usable_per_s
        for case in cases(
            brokers, "equal", (subscriptions,), ALGORITHMS, study=PLAN, usable_per_s=each
        )
    ]  # fmt: skip


EXPERIMENT = Experiment(
    name="allocation-capacity",
    title="Broker allocation, brokers of other capacities",
    question=(
        "The thesis does not say how much its brokers can send. Is there a capacity with which the"
        " claims hold that do not reproduce with the chosen one?"
    ),
    setup=SETUP
    + """
Here nothing is deployed: a plan is made for each capacity, given in quotes a second that a broker
may send, and its own predictions are compared. All publishers together send 46.7 quotes a second.
""",
    scales={
        "small": Scale(_cases(16, 200, (80.0, 130.0)), seeds=1),
        "paper": Scale(
            [
                *_cases(80, 2000, (100.0, 125.0, 150.0, 200.0, 250.0, 350.0, 500.0)),
                *_cases(80, 8000, (200.0, 250.0, 350.0, 500.0, 700.0)),
            ],
            seeds=1,
        ),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
)
