"""`cram-closeness`: what the metric that CRAM clusters by changes."""

from __future__ import annotations

from godwit.experiments.allocation.claims import INTERSECT, IOS, IOU, XOR
from godwit.experiments.allocation.scales import SETUP, cases
from godwit.experiments.cram_closeness.claims import CLAIMS
from godwit.experiments.cram_closeness.figures import FIGURES
from godwit.experiments.cram_closeness.measures import MEASURES, measure
from godwit.experiments.cram_closeness.runs import CLUSTERS, DEPLOYED, run
from godwit.lab.declaration import Case, Experiment, Scale

METRICS = (INTERSECT, XOR, IOS, IOU)


def _cases(brokers: int, equal: int, unequal: int, few: int) -> list[Case]:
    return [
        *cases(brokers, "equal", (equal,), METRICS, study=DEPLOYED),
        *cases(brokers, "unequal", (unequal,), METRICS, study=DEPLOYED),
        *cases(brokers, "equal", (few,), (XOR, IOU), study=CLUSTERS),
    ]


def _always(_case: Case) -> bool:
    """Plans are timed."""
    return True


EXPERIMENT = Experiment(
    name="cram-closeness",
    title="CRAM: INTERSECT, XOR, IOS, IOU",
    question="CRAM merges the closest subscriptions. What does the metric of closeness change?",
    setup=SETUP
    + """
*Deployed*: as in `allocation-homogeneous` and `allocation-heterogeneous`, with the four metrics.
*Clusters*: a plan for 2,000 subscriptions, without deployment; its clusters are looked at. Times
are CPU times of the machine.
""",
    scales={
        "small": Scale(_cases(16, 400, 200, 200), seeds=1),
        "paper": Scale(_cases(80, 8000, 4100, 2000), seeds=1),
    },
    remarks="""\
Delays on this page are older than a correction, which `allocation-homogeneous` describes: copies
of a publication now leave a broker one after another.

R24, R26 (delay): XOR goes on to merge until 20 clusters are left, each of which is half a broker
full: with equal brokers it needs 20 brokers where IOU needs 14. So a broker receives less (2.6 and
3.3 messages a second) and delays are shorter, but all brokers together receive 9% more (51.0 and
46.7), because stocks are split. Its highest rate is 26% above IOU's with equal brokers, and 26%
below with unequal ones. `allocation-capacity` shows the same for other capacities: more traffic in
all, by 5% to 10%, and a mean that depends on how many brokers XOR's large clusters need. If the
scheme with the fewest brokers is kept instead of the last one, XOR
needs as many brokers as IOU, and receives 3% more at the mean (4,000 subscriptions).

R25 counts subscriptions that received nothing: IOU cannot merge them (nothing in common), XOR does.
Without these 325 of 8,000, with equal brokers, IOU has 40 clusters, one for each stock, and XOR 20.

R26: IOU has no hops at all; XOR has 0.004 and 0.003.

R27: with packed words, comparing with all is one operation: XOR's 19 million evaluations take no
longer than IOU's 20,000 with their walks through the poset (4.0 and 3.1 s of CPU time).

R28: INTERSECT, IOS and IOU make the same clusters and the same plan here. Their times (2.6, 4.1 and
3.1 s of CPU time, on a busy machine) differ by more than 10%.

R37: all 5 clusters of XOR fall into parts that have nothing in common, and none of IOU's 40. The
measure was changed after the first run, which counted clusters with any two subscriptions that have
nothing in common: 5 of 5 and 35 of 40, because two subscriptions of a stock may both overlap with a
third and not with each other.
""",
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
    alone=_always,
)
