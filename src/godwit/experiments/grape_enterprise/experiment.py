"""`grape-enterprise`: POP and GRAPE where a few subscribers of a publisher want everything."""

from __future__ import annotations

from godwit.experiments.grape_enterprise.claims import CLAIMS
from godwit.experiments.placement.figures import FANOUT_FIGURES, figures
from godwit.experiments.placement.measures import MEASURES, measure
from godwit.experiments.placement.placement_setup import SETUP, cases
from godwit.experiments.placement.runs import run
from godwit.lab.declaration import Experiment, Scale

PAPER = (63, 2, (1, 2, 4, 16, 63)), (63, 4, (4, 16)), (127, 2, (4,))

EXPERIMENT = Experiment(
    name="grape-enterprise",
    title="POP and GRAPE with an enterprise workload",
    question=(
        "A few subscribers of each publisher want all its publications and sit together, many want"
        " a little and sit anywhere. How much load and delay do POP and GRAPE save by moving"
        " publishers, and at what cost?"
    ),
    setup=SETUP
    + """
In the *enterprise* workload (GS3) 5% of a publisher's subscribers want all its quotes and sit at
one broker; 95% want about a tenth and sit at X - 1 others.

The tree of 63 brokers is run with X from 1 to 63, that of 127 with X = 4 only and for 12 minutes
instead of 18: five seeds of it take as long as all the rest. For the same reason a tree of 63
brokers with a fan-out of 4 replaces the thesis's tree of 127 (figure 7.14).
""",
    scales={
        "small": Scale(cases("enterprise", (31, 2, (1, 4, 16, 31))), seeds=1),
        "paper": Scale(cases("enterprise", *PAPER), seeds=5),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    remarks="""\
The largest reductions (G1 to G3) are those at X = 1, where all three policies put a publisher
beside its subscribers. Raw values there, for a broker on average: input utilisation 0.0149%
without, 0.0028% with any policy; incoming messages 1.04 and 0.13 a second; messages in and out
3.53 and 1.71 a second; delay of a delivery 6.27 and 1.58 ms. With X = 16 GRAPE load 100%
leaves 0.0079% of 0.0201%, 0.72 of 1.33 messages in, and 2.89 of 4.11 in and out; GRAPE delay 100%
leaves 3.22 ms of 5.14. Utilisations are low because the brokers of the simulator are fast and not
shared; only ratios can be compared.

G2 counts messages in and out, and does not reproduce: 1.58 of the 3.53 messages a second are
deliveries to subscribers, which no policy can save. It reproduces if only incoming messages are
counted, and would if deliveries were left out (1.95 and 0.13 a second, 93% less). The thesis does
not state what its figures count; GRAPE's message rate of a system is the sum of incoming messages
(chapter 6), and for CRAM's figures the thesis states that the input utilisation varies directly
with the message rate. This suggests that G2 is what is called *in* here.

In the tree of 127 brokers, at X = 4, load 100% leaves 2.03 of 7.14 messages in, 0.030% of 0.122%
input utilisation and 5.11 of 7.21 ms; delay 100% 3.76, 0.060% and 4.53 ms; POP 3.92, 0.055% and
4.81 ms.

G7 (cluster) and G11 depend on the thesis's machines. On its cluster six or seven brokers share a
node, so hops cost little, and busy brokers are slow; on its PlanetLab 80 subscribers at one broker
share a thin line, so X = 1 and X = 2 are slow. Here no message waits in a queue, a hop takes little
more than 0.5 ms, and the delay follows the number of hops: it is lowest at X = 1, in either tree.

G10 holds by its rule, but the larger tree has X = 4 only, and the largest reduction is at X = 1. At
X = 4, which both have, delay 100% saves 40% of the delay in the smaller tree and 37% in the larger
one: that is not "little".

G14 uses means over the seeds; the seed with the most overhead under GRAPE has 16.5%, at X = 63.

G21 (GRAPE) holds for four of five seeds. Selection takes as long as the answer of the farthest
broker. If few brokers are queried, that is often the target of the move: the correlation is 0.67 at
X = 2, and 0.30 at X = 63.

POP and GRAPE delay 100% move publishers until the end, 54 and 68 moves of 20 publishers at X = 16,
while load 100% makes 20: the median of the deliveries lies between two brokers, and the traced
quotes decide which side is heavier. The thesis observed such moves as well (G41).
""",
    figures=(
        *figures(
            {
                "message-rate": "7.13a",
                "input": "7.13b",
                "delay": "7.13c",
                "hops": "7.13g",
                "overhead": "7.13h",
                "selection": "7.15b",
                "pause": "7.15c",
            }
        ),
        *FANOUT_FIGURES,
    ),
)
