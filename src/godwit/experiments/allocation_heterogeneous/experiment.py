"""`allocation-heterogeneous`: brokers of three sizes, RS2 of the thesis."""

from __future__ import annotations

from godwit.experiments.allocation.claims import COMPARED
from godwit.experiments.allocation.figures import figures
from godwit.experiments.allocation.measures import MEASURES, measure
from godwit.experiments.allocation.runs import run
from godwit.experiments.allocation.scales import SETUP, cases
from godwit.experiments.allocation_heterogeneous.claims import CLAIMS
from godwit.lab.declaration import Experiment, Scale

EXPERIMENT = Experiment(
    name="allocation-heterogeneous",
    title="Broker allocation, unequal brokers",
    question=(
        "Of 80 brokers 15 have the full bandwidth, 25 half of it and 40 a quarter, and publishers"
        " have from 5 to 200 subscriptions. How few brokers can carry the load?"
    ),
    setup=SETUP,
    scales={
        "small": Scale(cases(16, "unequal", (200, 400), COMPARED), seeds=1),
        "paper": Scale(cases(80, "unequal", (1025, 2050, 3075, 4100), COMPARED), seeds=1),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=figures(
        {
            "brokers": "7.18a",
            "message-rate": "7.18c",
            "message-rate-max": "7.18c",
            "overloaded": "7.22b",
        }
    ),
)
