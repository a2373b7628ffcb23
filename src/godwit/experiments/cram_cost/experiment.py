"""`cram-cost`: what making a plan costs."""

from __future__ import annotations

from collections.abc import Sequence

from godwit.experiments.allocation.claims import COMPARED, IOU
from godwit.experiments.allocation.scales import SETUP, cases
from godwit.experiments.cram_cost.claims import CLAIMS
from godwit.experiments.cram_cost.figures import FIGURES
from godwit.experiments.cram_cost.measures import MEASURES, measure
from godwit.experiments.cram_cost.runs import PLAN, SEARCH, STOP_RULE, run
from godwit.lab.declaration import Case, Experiment, Scale


def _cases(brokers: int, equal: Sequence[int], unequal: Sequence[int]) -> list[Case]:
    return [
        *cases(brokers, "equal", equal, COMPARED, study=PLAN),
        *cases(brokers, "unequal", unequal, COMPARED, study=PLAN),
        *cases(brokers, "equal", equal, (IOU,), study=SEARCH, search="exact"),
        *cases(brokers, "equal", equal, (IOU,), study=SEARCH, search=STOP_RULE),
    ]


def _always(_case: Case) -> bool:
    """Everything is timed."""
    return True


EXPERIMENT = Experiment(
    name="cram-cost",
    title="What a plan costs to make",
    question=(
        "How does the time to make a plan grow with the number of subscriptions, and what do CRAM's"
        " groups of identical filters and its poset save?"
    ),
    setup=SETUP
    + """
Here nothing is simulated: profiles come from evaluating every filter for every quote, which gives
the same as deliveries. *Plan* makes a plan. *Search* makes groups of subscriptions with the same
profile, inserts them into the poset, and searches the closest partner of each with IOU: with exact
bounds, or with the thesis's rule to stop where closeness falls. Times are CPU times of the machine.
""",
    scales={
        "small": Scale(_cases(16, (200, 400), (200, 400)), seeds=1),
        "paper": Scale(_cases(80, (2000, 4000, 6000, 8000), (1025, 2050, 3075, 4100)), seeds=1),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
    alone=_always,
)
