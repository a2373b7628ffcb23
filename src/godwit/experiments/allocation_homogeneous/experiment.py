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
    remarks="""\
R1 and R6: the best of CRAM-IOU is 4 of 80 brokers, with 2,000 subscriptions; the thesis's 7 brokers
with a highest rate of 7 messages a second (85% less than MANUAL) are the result with 4,000, and its
mean of 92% less that with 8,000, where 14 brokers receive 3.3 messages a second each and MANUAL's
42.4. Counted in and out, a broker of MANUAL has 165 and one of CRAM-IOU 466 messages a second: it
serves 570 subscribers instead of 100.

R2 does not reproduce. BIN PACKING needs 4, 8, 11 and 15 brokers, CRAM-IOU 4, 7, 11 and 14, and no
plan can do with less than 4, 7, 10 and 13: 47% fewer is impossible here. It takes brokers that can
feed two others at most with all publications, so that half of BIN PACKING's brokers only forward:
`allocation-capacity` has 33% fewer with brokers of 125 quotes a second, and plans of
`allocation-large-plans` have 43% fewer (73 and 129 of 400; not deployed).

R3: FBF and BIN PACKING need the same number at every size. With hundreds of small subscriptions on
a broker, first fit fills it in any order. BIN PACKING has fewer brokers than FBF if brokers are
smaller (250 quotes a second: 8 and 9 with 2,000 subscriptions, 32 and 33 with 8,000; 16 and 25 for
both with 4,000 and 6,000).

R8 depends on ties. If publishers differ by a thousandth in bandwidth, sorting by bandwidth keeps
the subscribers of a stock together: in a plan for 8,000 subscriptions and 250 quotes a second, a
broker of BIN PACKING then receives 19 messages a second instead of 44. The experiment gives all
publishers the same bandwidth for this reason. Its rule was first "at least 90% of all", with the
same verdict.

R11: with 2,000 subscriptions CRAM-IOU has 70%, because its last broker of four is not full; at all
other sizes Or is 75% to 82%. No plan could have more: at least four brokers are needed, and what
subscribers are sent is 70% of the bandwidth of four.

R15, R16: a subscriber waits until the copies for all others at its broker have been sent, and a
copy takes 1.7 ms. PAIRWISE-N and CRAM-IOU put the 200 subscribers of a stock at one broker, so the
mean delay is 399 and 322 ms with 8,000 subscriptions (107 and 93 ms with 2,000), against 78 ms of
MANUAL, where 2.5 of them share a broker; FBF, which spreads them over 15 brokers and has few hops,
has 72 ms. In the thesis a hop takes longer, compared with a copy: 56% more for PAIRWISE-N means
that MANUAL's 7 hops take most of the time. BIN PACKING's 231 ms are due to a broker with many
subscriptions of low traffic, which matches for 73% of its time.

R29: FBF's brokers all receive everything, BIN PACKING's first ones do not; so FBF has the higher
mean Ir, by up to 7%. BIN PACKING has the highest Ir of a single broker (73%), as stated.

Delays (R15, R16) and the overloads of PAIRWISE-K (R30) on this page are older than two corrections.
Until then all copies of a publication at a broker arrived with the last one, so that a subscriber
waited for twice as many as it does now on average; and PAIRWISE-K had as many clusters as CRAM-XOR
has in the scheme with the fewest brokers, not in the last one (`allocation-capacity` is newer).
Mean delays of the same plans since the first correction, over 25 s with 8,000 subscriptions and
40 s with 2,000 (before it, over the same time, in parentheses):

| ms | MANUAL | PAIRWISE-N | FBF | BIN PACKING | CRAM-IOU |
| --- | --- | --- | --- | --- | --- |
| 2,000 | 62 (63) | 79 (106) | 48 (57) | 48 (57) | 64 (94) |
| 8,000 | 77 (79) | 279 (388) | 64 (73) | 298 (310) | 205 (323) |

So PAIRWISE-N is 26% above MANUAL with 2,000 subscriptions and 261% with 8,000: the thesis's 56% is
between. What it adds grows with the subscribers of a stock at a broker, which wait for each other
and delay what passes there; a hop adds 9 to 11 ms. With 8,000 subscriptions 56% would take hops of
about 43 ms. CRAM-IOU is below BIN PACKING with 8,000, as stated, and not with 2,000.

R30, R16 (overload): no broker of AUTOMATIC or PAIRWISE-K is overloaded with equal brokers; the
busiest use 64% and 77% of their bandwidth. With brokers of half the capacity they would be, but
then a stock fills two thirds of a broker, and CRAM-IOU needs more brokers than BIN PACKING (40 and
32). With unequal brokers R30 holds but for one case: `allocation-heterogeneous`.

plan-3: the bound is 10 and 13 brokers with 6,000 and 8,000 subscriptions, plans of the thesis have
11 and 14. CRAM moves a stock as a whole, and three fill a broker to 97%; 40 stocks need a
fourteenth broker. The bounds are tight: the scheme with the fewest brokers and local search (`plan`
= best in `allocation-forecast`) have 10 and 13.

Predictions: the largest error of any broker of FBF, BIN PACKING and CRAM-IOU is 2.3% of the input
rate, 4.0% of the output bandwidth and 4.0% of the message rate.
""",
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
