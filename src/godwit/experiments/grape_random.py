"""`grape-random`: POP and GRAPE where every broker's subscribers want the same mixture.

How it is run and measured is in relocating.py.  The thesis's claims about overload (G33, G34) are
not here: nobody is overloaded in this setup.
"""

from __future__ import annotations

from godwit.experiments.grape_enterprise import SETUP, cases
from godwit.experiments.relocating import run
from godwit.experiments.relocating_claims import (
    DELAY,
    DELAYS,
    HOPS,
    INPUT,
    LOAD,
    MESSAGES,
    OUTPUT,
    POP,
    STATIC,
    Cost,
    at_most,
    cluster,
    differing,
    everywhere,
    on_average,
    points,
)
from godwit.experiments.relocating_figures import figures
from godwit.experiments.relocating_measures import MEASURES, measure
from godwit.lab.claims import Agreement, Claim, Reduction, Shape
from godwit.lab.experiment import Experiment, Results, Scale

#: What the thesis calls practically equal.
EQUAL = 0.10


def _overhead_below_pop(results: Results) -> float:
    grape, pop = (on_average("overhead_share", policy, results) for policy in (LOAD, POP))
    return 1 - grape / pop


def _half_as_much_again(results: Results) -> float:
    """How far POP's message rate is from one and a half times GRAPE's."""
    ratio = on_average(MESSAGES, POP, results) / on_average(MESSAGES, LOAD, results)
    return abs(ratio / 1.5 - 1)


def _pop_is_fastest(results: Results) -> bool:
    return all(
        of(DELAYS, POP) <= of(DELAYS, other)
        for of in points(cluster(results))
        for other in (STATIC, DELAY)
    )


CLAIMS = (
    Claim(
        "G28", "Load 100% and delay 100% are practically equal in all metrics",
        "thesis 7.2.3",
        Agreement(EQUAL, differing((MESSAGES, INPUT, OUTPUT, HOPS, DELAYS), LOAD, DELAY)),
    ),
    Claim(
        "G29", "GRAPE's message rate and Ir equal those of the static tree",
        "thesis 7.2.3", Agreement(EQUAL, differing((MESSAGES, INPUT), LOAD, STATIC)),
    ),
    Claim(
        "G29 output", "GRAPE's Or is above that of the static tree",
        "thesis 7.2.3",
        Shape(
            "Or under load 100% > static, at every size and X",
            everywhere(lambda of: of(OUTPUT, LOAD) > of(OUTPUT, STATIC)),
        ),
    ),
    Claim(
        "G30", "GRAPE's overhead is 5% of the messages at most",
        "thesis 7.2.3", Cost(0.05, at_most("overhead_share", LOAD, DELAY)),
    ),
    Claim(
        "G30 POP", "GRAPE's overhead is 91% below POP's",
        "thesis 7.2.3", Reduction(0.91, _overhead_below_pop),
    ),
    Claim(
        "G31", "POP equals GRAPE in hops and utilisations",
        "thesis 7.2.3", Agreement(EQUAL, differing((HOPS, INPUT, OUTPUT), POP, LOAD)),
    ),
    Claim(
        "G31 messages", "POP's message rate is half as much again as GRAPE's",
        "thesis 7.2.3", Agreement(EQUAL, _half_as_much_again),
    ),
    Claim(
        "G32", "POP has the lowest delay, below delay 100%",
        "thesis figure 7.15d, cluster",
        Shape("delay under POP <= delay 100% and static, in the largest tree", _pop_is_fastest),
    ),
)  # fmt: skip

EXPERIMENT = Experiment(
    name="grape-random",
    title="POP and GRAPE with a random workload",
    question=(
        "If subscribers who want little, much and everything are mixed at random over X brokers, is"
        " there anything left for POP and GRAPE to gain?"
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
Only the tree of 63 brokers was run: it is the smaller and the larger one here. So what the thesis
says of its cluster (G32) is asked of the wrong tree. X is 1, 16 and 63.

With subscribers at 16 or at all brokers GRAPE finds little to save, as the thesis says: of 8.10
and 9.62 messages/s of a broker it leaves 7.97 and 9.84, of an input utilisation of 0.0485% and
0.0618% 0.0448% and 0.0587%. It is the hops that it saves, 6.67 to 3.91 and 6.72 to 3.99, and so
the delay, 5.30 to 3.34 ms and 5.37 to 3.40 ms: publishers sit at random brokers first, and in the
middle of their subscribers afterwards.

G29 does not reproduce because of X = 1, over which its rule averages as well: there all
subscribers sit at one broker, the publisher moves to them, and 4.57 messages/s become 2.68.
Without X = 1 message rates differ by 0.5% and Ir by 6%. Or is above that of the static tree where
all brokers have subscribers, and not at X = 16.

G30 does not reproduce by little: GRAPE's overhead is 3.9% at X = 16, and 5.8% at X = 63. It is
two letters for each link in 50 publications; in the thesis's cluster it would be 100
publications.

G31: POP's message rate is 1.34 times GRAPE's at X = 16, 1.35 times at X = 63, and equal at X = 1,
where there is nobody to answer.

G32: POP's delay and that of delay 100% are equal within 0.1%; which of them is lower is chance.
""",
    figures=figures({"delay": "7.15d"}),
)
