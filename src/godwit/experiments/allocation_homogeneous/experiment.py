"""`allocation-homogeneous`: equal brokers, RS1 of the thesis."""

from __future__ import annotations

from godwit.experiments.allocation.claims import COMPARED
from godwit.experiments.allocation.figures import figures
from godwit.experiments.allocation.measures import MEASURES, measure
from godwit.experiments.allocation.runs import run
from godwit.experiments.allocation.scales import SETUP, cases
from godwit.experiments.allocation_homogeneous.claims import CLAIMS
from godwit.lab.declaration import Experiment, Scale

EXPERIMENT = Experiment(
    name="allocation-homogeneous",
    title="Broker allocation, equal brokers",
    question=(
        "How few of 80 equal brokers can carry the load, with how little traffic, and at what"
        " delay, if subscriptions are allocated by what they receive?"
    ),
    setup=SETUP,
    scales={
        "small": Scale(cases(16, "equal", (200, 400), COMPARED), seeds=1),
        "paper": Scale(cases(80, "equal", (2000, 4000, 6000, 8000), COMPARED), seeds=1),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=figures(
        {
            "brokers": "7.18b",
            "message-rate": "7.18d",
            "message-rate-max": "7.18d",
            "input": "7.19a",
            "input-sorted": "7.22a",
            "output": "7.19b",
            "hops": "7.19c",
            "delay": "7.19d",
            "overloaded": "7.22b",
        }
    ),
)
