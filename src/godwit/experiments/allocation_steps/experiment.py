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
    remarks="""\
R18: GRAPE moves publishers of MANUAL, and hops fall from 7.1 to 4.4 and delays from 78 to 53 ms,
but every broker has subscribers of nearly every stock: 42.4 messages a second before and after.

R19: with publishers at the root the mean is 6.6 (84% less), and the root receives all 46.7.

R20: the highest rate with unequal brokers is 11.7 (75% less): the busiest broker serves ten stocks
with few subscriptions. With equal brokers it is 3.5, because three stocks of 200 subscriptions fill
a broker exactly and none is split; in the thesis some are.

R23: 13% with equal and 20% with unequal brokers in these runs, in which all copies of a publication
at a broker arrived with the last one. That was corrected since: a subscriber waits for the copies
before its own. The same plans with equal brokers then have 253 ms with publishers at the root and
203 ms after they moved, 20% less; with unequal brokers (25 s) 203 and 146 ms, 28% less: at least
the thesis's 16% and 24%.

R16: MANUAL has the same delay with both, 78 and 81 ms: half of its brokers have a quarter of the
bandwidth.
""",
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
)
