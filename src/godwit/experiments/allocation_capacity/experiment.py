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
from godwit.experiments.allocation.setups import USABLE_LARGE_PER_S
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
Beside them are plans for 400 brokers (RS3), whose 72 publishers send 84 quotes a second: figure
7.18b, about which R2 is stated, has this network too.
""",
    scales={
        "small": Scale(_cases(16, 200, (80.0, 130.0)), seeds=1),
        "paper": Scale(
            [
                *_cases(80, 2000, (100.0, 125.0, 150.0, 200.0, 250.0, 350.0, 500.0)),
                *cases(
                    400,
                    "equal",
                    (16_200,),
                    (FBF, BIN_PACKING, IOU),
                    study=PLAN,
                    usable_per_s=USABLE_LARGE_PER_S[400],
                ),
            ],
            seeds=1,
        ),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
    remarks="""\
Brokers of a plan for 2,000 subscriptions:

| quotes/s | FBF | BIN PACKING | IOU | XOR | at least | overloaded: AUTOMATIC | PAIRWISE-K |
| --- | --- | --- | --- | --- | --- | --- | --- |
| 100 | 32 | 31 | 21 | 21 | 17 | 6 | 3 |
| 125 | 25 | 21 | 14 | 19 | 14 | 5 | 2 |
| 150 | 16 | 16 | 14 | 19 | 12 | 3 | 1 |
| 200 | 11 | 12 | 10 | 11 | 9 | 2 | 0 |
| 250 | 9 | 8 | 8 | 10 | 7 | 1 | 0 |
| 350 | 6 | 6 | 6 | 6 | 5 | 0 | 0 |
| 500 | 4 | 4 | 4 | 5 | 4 | 0 | 0 |

R2: what CRAM-IOU saves are brokers that only forward. A broker of BIN PACKING receives nearly all
46.7 quotes a second, so a forwarder feeds two others if it may send 100, and ten with 500. The most
is 33%, with 125; 47% would be 11 brokers there, and at least 14 are needed. With 400 brokers it is
43%: FBF, BIN PACKING and CRAM-IOU need 141, 129 and 73 of them, and at least 72 are needed. There a
forwarder feeds two others, and half of BIN PACKING's brokers are forwarders. It is not independent:
the capacity, 185 quotes a second, follows from a saturated MANUAL, and R2 was looked at as well.

R3: one fewer with 100 and with 250; with other capacities from four fewer to one more. First fit
fills a broker with hundreds of small subscriptions in any order, so the number is that of the bound
but for chance.

R24: with XOR all brokers together always receive more than with IOU, by 5% to 10%: it merges light
subscriptions of unlike stocks, and a stock of which some are elsewhere is sent to two brokers. The
mean of a broker is 10% higher where both plans have as many brokers (100), and up to 20% lower
where XOR needs more. 55% is not reached with any capacity; the highest rate is up to 62% higher.

R30: a random tree of 80 brokers has one with many links, over which it sends up to all quotes: it
is overloaded if a broker may send 250 or less. PAIRWISE-K puts clusters that fill most of a broker
at random ones, where others meet them or pass: up to 150. So R30 and R2 belong to
brokers that may send two to five times all quotes, and R1 and R6 to brokers that may send ten times
as many (`allocation-homogeneous`): no capacity explains all claims.
""",
)
