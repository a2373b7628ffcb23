"""`grape-random`: POP and GRAPE where every broker's subscribers want the same mixture."""

from __future__ import annotations

from godwit.experiments.grape_random.claims import CLAIMS
from godwit.experiments.placement.figures import figures
from godwit.experiments.placement.measures import MEASURES, measure
from godwit.experiments.placement.placement_setup import SETUP, cases
from godwit.experiments.placement.runs import run
from godwit.lab.declaration import Experiment, Scale

EXPERIMENT = Experiment(
    name="grape-random",
    title="POP and GRAPE with a random workload",
    question=(
        "If subscribers who want little, much and everything are mixed at random over X brokers,"
        " what can POP and GRAPE still gain?"
    ),
    setup=SETUP
    + """
In the *random* workload (GS2) 70% of a publisher's subscribers want about a tenth of its quotes,
25% half and 5% all, each at one of X brokers at random.
""",
    scales={
        "small": Scale(cases("random", (31, 2, (1, 8, 31))), seeds=1),
        "paper": Scale(cases("random", (63, 2, (1, 16, 63))), seeds=3),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    remarks="""\
Only the tree of 63 brokers was run: it is both the smallest and the largest one. So the claim about
the thesis's cluster (G32) is judged with the wrong tree. X is 1, 16 and 63.

With subscribers at 16 or at all brokers GRAPE saves little load, as the thesis states: 8.10 and
9.62 messages/s of a broker become 7.97 and 9.84, an input utilisation of 0.0485% and 0.0618%
becomes 0.0448% and 0.0587%. It saves hops, from 6.67 to 3.91 and from 6.72 to 3.99, and so delay,
from 5.30 to 3.34 ms and from 5.37 to 3.40 ms: publishers start at random brokers and end in the
middle of their subscribers.

G29 does not reproduce because its rule averages over X = 1 as well: there all subscribers sit at
one broker, the publisher moves to them, and 4.57 messages/s become 2.68.
Without X = 1 message rates differ by 0.5% and Ir by 6%. Or is above that of the static tree where
all brokers have subscribers, and not at X = 16.

G30 is narrowly missed: GRAPE's overhead is 3.9% at X = 16, and 5.8% at X = 63. It is two letters
for each link in 50 publications; in the thesis's cluster it would be 100 publications.

G31: POP's message rate is 1.34 times GRAPE's at X = 16, 1.35 times at X = 63, and equal at X = 1,
where no other broker answers.

G32: POP's delay and that of delay 100% are equal within 0.1%; which one is lower is random.
""",
    figures=figures({"delay": "7.15d"}),
)
