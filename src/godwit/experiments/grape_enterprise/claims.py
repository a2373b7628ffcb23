"""The claims of `grape-enterprise`: G1 to G14 of the thesis, with the rules that decide.

Those about the cost of a decision and of a move are in move_claims.py.

Where a claim has an exception ("except X = 1"), or a word instead of a number ("almost all",
"little"), the rule states how it is read.
"""

from __future__ import annotations

from godwit.experiments.grape_enterprise import move_claims
from godwit.experiments.placement.claims import (
    DELAY,
    DELAYS,
    HOPS,
    INPUT,
    LOAD,
    MESSAGES,
    MESSAGES_IN,
    OUTPUT,
    POLICIES,
    POP,
    STATIC,
    Of,
    at_most,
    cluster,
    everywhere,
    on_average,
    planetlab,
    point,
    points,
    up_to,
)
from godwit.lab.declaration import NotMeasuredError, Results
from godwit.lab.rules import Claim, Cost, Reduction, ShapeRule

ALMOST_ALL = 0.75


def _lowest(measure: str, policy: str, of: Of) -> bool:
    return all(of(measure, policy) <= of(measure, other) for other in POLICIES)


def _same_homes(results: Results) -> bool:
    alone = results.where(x=1)
    homes = {policy: alone.where(policy=policy).values("homes") for policy in (POP, LOAD, DELAY)}
    return homes[POP] == homes[LOAD] == homes[DELAY]


def _load_follows_messages(of: Of) -> bool:
    return all(
        of(measure, policy) < of(measure, STATIC)
        for policy in (POP, LOAD, DELAY)
        if of(MESSAGES, policy) < of(MESSAGES, STATIC)
        for measure in (INPUT, OUTPUT)
    )


def _slower_than_static_on_the_cluster(results: Results) -> bool:
    return any(of(DELAYS, LOAD) > of(DELAYS, STATIC) for of in points(cluster(results), from_x=2))


def _fastest_almost_everywhere(results: Results) -> bool:
    found = [_lowest(DELAYS, DELAY, of) for of in points(results)]
    return sum(found) >= ALMOST_ALL * len(found)


def _little_left_on_the_cluster(results: Results) -> bool:
    small, large = planetlab(results), cluster(results)
    if small == large:
        raise NotMeasuredError("no second size of tree")
    gain = up_to(DELAYS, DELAY)
    return gain(large) < gain(small)


def _high_low_up(results: Results) -> bool:
    """Of GRAPE delay 100%: the delay of a static publisher does not depend on X."""
    small = planetlab(results)
    at_1, at_2 = (point(small.where(x=x))(DELAYS, DELAY) for x in (1, 2))
    *spread, at_all = (of(DELAYS, DELAY) for of in points(small, from_x=3))
    return at_2 > at_1 > min(spread) and at_all > min(spread)


def _between(results: Results) -> bool:
    for measure in (INPUT, DELAYS, HOPS):
        pop, load, delay = (
            on_average(measure, policy, results, from_x=2) for policy in (POP, LOAD, DELAY)
        )
        if not min(load, delay) <= pop <= max(load, delay):
            return False
    return True


CLAIMS = (
    Claim(
        "G1 POP", "POP reduces the mean input utilisation of brokers by up to 64%",
        "thesis 2.3, PlanetLab", Reduction(0.64, up_to(INPUT, POP)),
    ),
    Claim(
        "G1 GRAPE", "GRAPE, load 100%, reduces the mean input utilisation of brokers by up to 68%",
        "thesis 2.3, PlanetLab", Reduction(0.68, up_to(INPUT, LOAD)),
    ),
    Claim(
        "G2 POP", "POP reduces the mean message rate of brokers by up to 85%",
        "thesis 2.3, 8.1, PlanetLab", Reduction(0.85, up_to(MESSAGES, POP)),
    ),
    Claim(
        "G2 GRAPE", "GRAPE reduces the mean message rate of brokers by up to 85% (84%: E13)",
        "thesis 2.3, 8.1, PlanetLab", Reduction(0.84, up_to(MESSAGES, LOAD)),
    ),
    Claim(
        "G2 POP, in", "... of incoming messages, as GRAPE counts",
        "thesis 2.3, 8.1, PlanetLab", Reduction(0.85, up_to(MESSAGES_IN, POP)),
    ),
    Claim(
        "G2 GRAPE, in", "... of incoming messages",
        "thesis 2.3, 8.1, PlanetLab", Reduction(0.84, up_to(MESSAGES_IN, LOAD)),
    ),
    Claim(
        "G3 POP", "POP reduces the mean delivery delay by up to 63%",
        "thesis 2.3, 8.1, PlanetLab", Reduction(0.63, up_to(DELAYS, POP)),
    ),
    Claim(
        "G3 GRAPE", "GRAPE, delay 100%, reduces the mean delivery delay by up to 68%",
        "thesis 2.3, 8.1, PlanetLab", Reduction(0.68, up_to(DELAYS, DELAY)),
    ),
    Claim(
        "G4", "GRAPE, load 100%, has the lowest message rate for all X but X = 1",
        "thesis 7.2.2, figures 7.13a and d",
        ShapeRule(
            "message rate under load 100% <= under all others, at every size and X > 1",
            everywhere(lambda of: _lowest(MESSAGES, LOAD, of), from_x=2),
        ),
    ),
    Claim(
        "G5", "At X = 1 all policies choose the same broker, that of the subscribers",
        "thesis 7.2.2",
        ShapeRule("the publishers' last moves lead to the same brokers, at X = 1", _same_homes),
    ),
    Claim(
        "G6", "A lower message rate comes with a lower input and output utilisation",
        "thesis figures 7.13b and e",
        ShapeRule(
            "where the message rate is below static, so are mean Ir and Or",
            everywhere(_load_follows_messages),
        ),
    ),
    Claim(
        "G7 hops", "Load 100% sacrifices delay and hops",
        "thesis figures 7.13c, f, g",
        ShapeRule(
            "delay and hops under load 100% >= under delay 100%, at every size and X > 1",
            everywhere(
                lambda of: all(of(each, LOAD) >= of(each, DELAY) for each in (DELAYS, HOPS)),
                from_x=2,
            ),
        ),
    ),
    Claim(
        "G7 cluster", "On the cluster the delay under load 100% exceeds that of the static tree",
        "thesis figure 7.13f",
        ShapeRule(
            "delay under load 100% > static, at some X > 1 of the largest tree",
            _slower_than_static_on_the_cluster,
        ),
    ),
    Claim(
        "G8", "Delay 100% has the lowest delay for almost all X",
        "thesis figures 7.13c and f",
        ShapeRule(
            f"delay under delay 100% <= under all others, at {ALMOST_ALL:.0%} of all sizes and X",
            _fastest_almost_everywhere,
        ),
    ),
    Claim(
        "G9", "Delay 100% has more messages, and higher Ir and Or, than load 100%",
        "thesis figure 7.13",
        ShapeRule(
            "message rate, Ir and Or under delay 100% >= under load 100%, at every size and X > 1",
            everywhere(
                lambda of: all(
                    of(each, DELAY) >= of(each, LOAD) for each in (MESSAGES, INPUT, OUTPUT)
                ),
                from_x=2,
            ),
        ),
    ),
    Claim(
        "G10", "On the cluster the delay can be reduced less",
        "thesis figure 7.13f",
        ShapeRule(
            "largest reduction of delay by delay 100%, in the largest tree < in the smallest",
            _little_left_on_the_cluster,
        ),
    ),
    Claim(
        "G11", "Over X the delay is high at 1, higher at 2, much lower when spread, and slightly"
        " higher at all brokers",
        "thesis figure 7.13c",
        ShapeRule(
            "under delay 100%, smallest tree: X = 2 > X = 1 > lowest of those between < all",
            _high_low_up,
        ),
    ),
    Claim(
        "G12", "POP's Ir, delay and hops lie between those of load 100% and delay 100%",
        "thesis figure 7.13",
        ShapeRule("means over all sizes and X > 1 lie between", _between),
    ),
    Claim(
        "G13", "POP's message rate exceeds GRAPE's, because of its traces",
        "thesis figures 7.13a, d, h",
        ShapeRule(
            "message rate and overhead under POP > under load 100%, at every size and X > 1",
            everywhere(
                lambda of: all(of(m, POP) > of(m, LOAD) for m in (MESSAGES, "overhead_share")),
                from_x=2,
            ),
        ),
    ),
    Claim(
        "G14 POP", "POP's overhead is 32% of the messages at most",
        "thesis figure 7.13h", Cost(0.32, at_most("overhead_share", POP)),
    ),
    Claim(
        "G14 GRAPE", "GRAPE's overhead is 16% of the messages at most",
        "thesis figure 7.13h", Cost(0.16, at_most("overhead_share", LOAD, DELAY)),
    ),
    *move_claims.CLAIMS,
)  # fmt: skip
