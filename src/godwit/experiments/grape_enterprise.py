"""`grape-enterprise`: POP and GRAPE where a few subscribers of a publisher want everything.

How it is run and measured is in relocating.py, what it claims in grape_enterprise_claims.py.
"""

from __future__ import annotations

from godwit.experiments.grape_enterprise_claims import CLAIMS
from godwit.experiments.relocating import run
from godwit.experiments.relocating_claims import POLICIES
from godwit.experiments.relocating_figures import FANOUT_FIGURES, figures
from godwit.experiments.relocating_measures import MEASURES, measure
from godwit.lab.experiment import Case, Experiment, Scale


def cases(mix: str, *swept: tuple[int, int, tuple[int, ...]]) -> list[Case]:
    """Trees, each with its number of brokers, its fan-out, and at which X it is looked at."""
    return [
        {"brokers": brokers, "fanout": fanout, "mix": mix, "x": x, "policy": policy}
        for brokers, fanout, places in swept
        for x in places
        for policy in POLICIES
    ]


PAPER = (63, 2, (1, 2, 4, 16, 63)), (63, 4, (4, 16)), (127, 2, (4,))

SETUP = """\
Setup GS1 of the thesis (7.2.1): a balanced tree; each publisher, of one stock, sits
at a random broker, and its subscribers sit at X brokers drawn for it.  Four policies: *static*
(nobody moves), POP, GRAPE load 100%, GRAPE delay 100%.

| | 63 brokers (the thesis's PlanetLab) | 127 brokers (its cluster) | 31 brokers (scale small) |
| --- | --- | --- | --- |
| publishers | 20 | 30 | 6 |
| quotes per minute, of each | 10 to 40 | 30 to 300 | 60 to 180 |
| subscribers of each | 80 | 200 | 40 |
| P_threshold = G_threshold | 50 | 100 | 40 |
| simulated | 18 minutes | 12 minutes | 5 minutes |
| measured | the last 3 minutes | the last 2 minutes | the last minute |

POP traces at most half of P_threshold in a minute.  After a move a publisher is left alone for a
minute, which is ours.  Brokers and links have the simulator's defaults (0.1 ms and 1 µs for each
subscription to match a message, 100 Mbit/s, 0.5 ms between neighbours): nobody is near overload,
and what differs between machines of the thesis is not here.

The oracle checks every delivery of every run; a violation would be an error.  Moves lose nothing.
"""

EXPERIMENT = Experiment(
    name="grape-enterprise",
    title="POP and GRAPE with an enterprise workload",
    question=(
        "A few subscribers of each publisher want all it publishes and sit together, many want a"
        " little and sit anywhere. How much load and delay do POP and GRAPE save by moving"
        " publishers, and what do they cost?"
    ),
    setup=SETUP
    + """
In the *enterprise* workload (GS3) 5% of a publisher's subscribers want all its quotes and sit at
one broker; 95% want about a tenth and sit at X - 1 others.

The tree of 63 brokers is looked at with X from 1 to 63, that of 127 with X = 4 only and for 12
minutes instead of 18: five seeds of it take as long as all the rest. For the same reason a tree
of 63 brokers with a fan-out of 4 stands for the thesis's of 127 (figure 7.14).
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
without, 0.0028% with any policy; messages that come in 1.04 and 0.13 a second; messages in and
out 3.53 and 1.71 a second; delay of a delivery 6.27 and 1.58 ms. With X = 16 GRAPE load 100%
leaves 0.0079% of 0.0201%, 0.72 of 1.33 messages in, and 2.89 of 4.11 in and out; GRAPE delay 100%
leaves 3.22 ms of 5.14. Utilisations are low because the brokers of the simulator are fast and not
shared; of these only ratios can be compared.

G2 counts messages in and out, and does not reproduce: 1.58 of the 3.53 messages a second are
deliveries to subscribers, which nobody can save. It reproduces if messages that come in are
counted, and would if deliveries were left out (1.95 and 0.13 a second, 93% less). With its
figures the thesis does not say what it counts; where GRAPE adds up the message rate of a system,
it adds up what comes in (chapter 6), and of CRAM's figures it says that the input utilisation
varies directly with the message rate. By that, G2 is what is called *in* here.

In the tree of 127 brokers, at X = 4, load 100% leaves 2.03 of 7.14 messages in, 0.030% of 0.122%
input utilisation and 5.11 of 7.21 ms; delay 100% 3.76, 0.060% and 4.53 ms; POP 3.92, 0.055% and
4.81 ms.

G7 (cluster) and G11 speak of what the thesis's machines did. On its cluster six or seven brokers
share a node, so that hops cost little, and busy brokers are slow; on its PlanetLab 80 subscribers
at one broker share a thin line, so that X = 1 and X = 2 are slow. Here nobody waits in a queue, a
hop takes 0.5 ms and a little more, and delay follows hops: the fewer, the better, in either tree,
and best at X = 1.

G10 holds by its rule, but the larger tree has X = 4 only, and the most is to gain at X = 1. At X
= 4, which both have, delay 100% saves 40% of the delay in the smaller tree and 37% in the larger
one: that is not "little".

G14 is asked of means over the seeds; the seed with the most overhead under GRAPE has 16.5%, at X
= 63.

G21 (GRAPE) holds for four of five seeds. Selection takes as long as the answer from farthest
away. If few brokers are asked, that is often the one to move to: the correlation is 0.67 at X =
2, and 0.30 at X = 63.

POP and GRAPE delay 100% go on moving publishers to the end, 54 and 68 moves of 20 publishers at X
= 16, while load 100% makes 20: the median of the deliveries lies on a border between brokers, and
which side is heavier is decided by which quotes were traced. The thesis saw such moves as well
(G41).
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
