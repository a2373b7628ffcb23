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
        "paper": Scale(cases(80, "unequal", (1025, 4100), COMPARED), seeds=1),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    remarks="""\
Delays and the rows of PAIRWISE-K on this page are older than two corrections, which
`allocation-homogeneous` describes: copies of a publication now leave a broker one after another,
and PAIRWISE-K has as many clusters as the last scheme of CRAM-XOR.

Two of the thesis's four sizes were deployed; `cram-cost` has plans for all of them.

R1, R9: CRAM-IOU needs 2 brokers for 1,025 and 7 for 4,100 subscriptions, all of them full ones; the
thesis's 80% are 16 brokers. R2: BIN PACKING needs 2 and 8, and the bound is 2 and 7. R3: FBF as
many as BIN PACKING.

R13: with 1,025 subscriptions AUTOMATIC has more hops (7.2) than MANUAL (6.2): a random tree of 80
brokers is not always flat. The rest of the order holds, and CRAM-IOU has none.

R16: as with equal brokers. PAIRWISE-K has a mean delay of 17 s with 1,025 subscriptions and 10 s
with 4,100, AUTOMATIC 0.11 and 2.7 s.

R20: the busiest broker of CRAM-IOU serves ten stocks with 20 to 68 subscriptions each and receives
11.7 messages a second (75% less than MANUAL), with 4,100 subscriptions.

R30: AUTOMATIC overloads 2 brokers with 4,100 subscriptions and none with 1,025, where its busiest
uses 73%. PAIRWISE-K overloads 2 and 5. PAIRWISE-N overloads 2 with 4,100, and none with 1,025, as
stated. Every overload was foreseen.
""",
    figures=figures(
        {
            "brokers": "7.18a",
            "message-rate": "7.18c",
            "message-rate-max": "7.18c",
            "overloaded": "7.22b",
        }
    ),
)
