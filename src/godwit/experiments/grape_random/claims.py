"""The thesis's claims about the random workload: G28 to G32.

Its claims about overload (G33, G34) are not here: no broker is overloaded in this setup.
"""

from __future__ import annotations

from godwit.experiments.placement.claims import (
    DELAY,
    DELAYS,
    HOPS,
    INPUT,
    LOAD,
    MESSAGES,
    OUTPUT,
    POP,
    STATIC,
    at_most,
    cluster,
    differing,
    everywhere,
    on_average,
    points,
)
from godwit.lab.declaration import Results
from godwit.lab.rules import Agreement, Claim, Cost, Reduction, ShapeRule

#: Relative difference that counts as practically equal.
EQUAL = 0.10


def _overhead_below_pop(results: Results) -> float:
    grape, pop = (on_average("overhead_share", policy, results) for policy in (LOAD, POP))
    return 1 - grape / pop


def _half_as_much_again(results: Results) -> float:
    """The error of "POP's message rate is one and a half times GRAPE's"."""
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
        ShapeRule(
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
        ShapeRule("delay under POP <= delay 100% and static, in the largest tree", _pop_is_fastest),
    ),
)  # fmt: skip
