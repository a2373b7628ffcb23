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
        "paper": Scale(_cases(80, (2000,)), seeds=1),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    remarks="""\
One size of the thesis's four was deployed.

The output of a broker is predicted within 1.0% for the profiled quotes and 9.3% for later ones
(BIN PACKING; CRAM-IOU 0.5% and 0.7%). The share of its stock that a subscription receives changes
by 10 percentage points on average. CRAM-IOU has all subscriptions of a stock at one broker, where
gains and losses cancel out. BIN PACKING sorts subscriptions by what they received, so those that
received little by chance are together, and receive more later.

The input of one broker of CRAM-IOU is 10.1% off, just above the bar: 75 of 2,000 subscriptions
received nothing before, so no profile says which stock they want, and they were placed anywhere.
Later some of them draw their stock to another broker.

No broker is overloaded with either. The best plan is that of the thesis here: both have as many
brokers as any plan needs.
""",
)
