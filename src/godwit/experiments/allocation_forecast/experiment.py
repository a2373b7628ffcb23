"""`allocation-forecast`: plans that are deployed with the quotes that follow the profiled ones."""

from __future__ import annotations

from collections.abc import Sequence

from godwit.experiments.allocation.claims import BIN_PACKING, IOU
from godwit.experiments.allocation.measures import MEASURES, measure
from godwit.experiments.allocation.runs import BEST, THESIS, run
from godwit.experiments.allocation.scales import SETUP, cases
from godwit.experiments.allocation.setups import LATER, PROFILED
from godwit.experiments.allocation_forecast.claims import CLAIMS
from godwit.lab.declaration import Case, Experiment, Scale


def _cases(brokers: int, subscriptions: Sequence[int]) -> list[Case]:
    return [
        case
        for quotes in (PROFILED, LATER)
        for algorithm, plan in ((BIN_PACKING, THESIS), (IOU, THESIS), (IOU, BEST))
        for case in cases(
            brokers, "equal", subscriptions, (algorithm,), plan=plan, quotes=quotes
        )
    ]  # fmt: skip


EXPERIMENT = Experiment(
    name="allocation-forecast",
    title="Broker allocation, the traffic that follows",
    question=(
        "A plan is made from what was delivered in the past. Is it right for what is published"
        " afterwards?"
    ),
    setup=SETUP
    + """
*Profiled* quotes are those that the plan was made from; *later* are as many that the same stocks
show afterwards. *Thesis* is the thesis's plan, *best* the one with the fewest brokers that CRAM-IOU
meets, without brokers that only forward, and improved by local search (500 steps).
""",
    scales={
        "small": Scale(_cases(16, (400,)), seeds=1),
        "paper": Scale(_cases(80, (2000, 8000)), seeds=1),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
)
