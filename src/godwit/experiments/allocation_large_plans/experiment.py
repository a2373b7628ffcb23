"""`allocation-large-plans`: the plans of `allocation-large`, without playing the publications."""

from __future__ import annotations

from godwit.experiments.allocation.claims import BIN_PACKING, IOU, MANUAL
from godwit.experiments.allocation.measures import PLANNED
from godwit.experiments.allocation.scales import SETUP, cases
from godwit.experiments.allocation_large_plans.claims import CLAIMS
from godwit.experiments.allocation_large_plans.runs import measure, run
from godwit.lab.declaration import Experiment, Scale

ALGORITHMS = (MANUAL, BIN_PACKING, IOU)


EXPERIMENT = Experiment(
    name="allocation-large-plans",
    title="Broker allocation, plans for 400 and 1,000 brokers",
    question="Does what holds for 80 brokers hold for plans of a network that is nearly saturated?",
    setup=SETUP
    + """
Here plans are made and not deployed: rates are those that the plans expect. With 80 brokers the
incoming rate of each broker was within 2.3% of that (plan-1 of `allocation-homogeneous`).
""",
    scales={
        "small": Scale(cases(16, "equal", (400,), ALGORITHMS), seeds=1),
        "paper": Scale(
            [
                *cases(400, "equal", (16_200,), ALGORITHMS),
                *cases(1000, "equal", (22_500,), ALGORITHMS),
            ],
            seeds=1,
        ),
    },
    run=run,
    measure=measure,
    measures=PLANNED,
    claims=CLAIMS,
)
