"""`allocation-large-plans`: the plans of `allocation-large`, without playing the publications."""

from __future__ import annotations

from pathlib import Path

from godwit.experiments.allocation.claims import BIN_PACKING, IOU, MANUAL
from godwit.experiments.allocation.expected_state import expected_of
from godwit.experiments.allocation.measures import PLANNED, predicted
from godwit.experiments.allocation.plan_notes import numbers_of, write_numbers
from godwit.experiments.allocation.runs import planned_of
from godwit.experiments.allocation.scales import SETUP, cases
from godwit.experiments.allocation.setups import setup_of
from godwit.experiments.allocation_large_plans.claims import CLAIMS
from godwit.lab.declaration import Case, Experiment, Scale, Trace

ALGORITHMS = (MANUAL, BIN_PACKING, IOU)


def run(case: Case, seed: int, folder: Path) -> None:
    """A plan is made; nothing is deployed."""
    gathered = expected_of(setup_of(case), seed)
    write_numbers(numbers_of(planned_of(gathered, case, seed), gathered), folder)


def measure(trace: Trace, _case: Case) -> dict[str, float]:
    _, found = predicted(trace)
    return found


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
