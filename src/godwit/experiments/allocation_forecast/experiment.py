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
    remarks="""\
Two of the thesis's four sizes were deployed. The largest error of any broker, 2,000 and 8,000
subscriptions:

| | output, profiled | output, later | input, profiled | input, later |
| --- | --- | --- | --- | --- |
| BIN PACKING | 1.0%, 0.9% | 9.3%, 26% | 0.0%, 0.6% | 0.0%, 4.7% |
| CRAM-IOU | 0.5%, 1.0% | 0.7%, 11% | 0.1%, 0.6% | 10%, 76% |
| CRAM-IOU, best | 0.5%, 1.0% | 0.7%, 11% | 0.1%, 1.1% | 10%, 52% |

So predictions hold for the traffic that they are made from, and not always for what follows: the
share of its stock that a subscription receives changes by 10 percentage points on average.

Output: CRAM-IOU has all subscriptions of a stock at one broker, where gains and losses cancel out.
BIN PACKING sorts subscriptions by what they received, so those that received little by chance are
together, and receive more later: with 8,000 subscriptions one of its brokers is overloaded (109%)
that the plan calls fine. Brokers of CRAM-IOU reach 96%.

Input: 75 of 2,000 and 325 of 8,000 subscriptions received nothing before, so no profile says which
stock they want, and they are where there is room. Later some of them draw their stock to another
broker: all brokers together receive 54.3 instead of 46.7 publications a second.

plan-3: with 8,000 subscriptions the best plan has 13 brokers, as many as any plan needs, and that
of the thesis 14. It fills them to 85% of their bandwidth, as planned, and to 96% with later quotes.
""",
)
