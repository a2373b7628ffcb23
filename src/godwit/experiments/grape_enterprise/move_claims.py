"""What `grape-enterprise` claims about decisions and moves: G17, G21, G23 to G26 of the thesis.

Times are those of the simulator's network, whose links take half a millisecond; the thesis's times
in seconds are those of PlanetLab and of its cluster.
"""

from __future__ import annotations

from statistics import mean

from godwit.experiments.placement.claims import (
    DELAY,
    DELAYS,
    LOAD,
    MESSAGES,
    POP,
    STATIC,
    Of,
    at_most,
    cluster,
    planetlab,
    point,
    points,
)
from godwit.lab.declaration import Results
from godwit.lab.rules import Agreement, Claim, Cost, ShapeRule

MOVING = POP, LOAD, DELAY
WIDE = 4
#: Correlations that count as strong, from here on, and as weak, up to there.
STRONG, WEAK = 0.9, 0.5


def _reductions(of: Of) -> tuple[float, float]:
    """The reduction of messages by load 100%, and of delay by delay 100%."""
    return (
        1 - of(MESSAGES, LOAD) / of(MESSAGES, STATIC),
        1 - of(DELAYS, DELAY) / of(DELAYS, STATIC),
    )


def _in_both(results: Results, fanout: int) -> Results:
    """The trees of one fan-out, at each size and X that both fan-outs have."""
    wide = {(run.case["brokers"], run.case["x"]) for run in results.where(fanout=WIDE).runs}
    return results.where(fanout=fanout).only(
        lambda run: (run.case["brokers"], run.case["x"]) in wide, "a size and X of both fan-outs"
    )


def _same_trends(results: Results) -> bool:
    return all(
        reduction > 0 for of in points(results, fanout=WIDE) for reduction in _reductions(of)
    )


def _smaller_reductions(results: Results) -> bool:
    narrow, wide = (
        [_reductions(of) for of in points(_in_both(results, fanout), fanout=fanout)]
        for fanout in (2, WIDE)
    )
    return all(
        mean(wider) < mean(narrower)
        for narrower, wider in zip(zip(*narrow, strict=True), zip(*wide, strict=True), strict=True)
    )


def _shorter_times(results: Results) -> bool:
    def over_all(fanout: int, measure: str) -> float:
        found = points(_in_both(results, fanout), fanout=fanout)
        return mean(of(measure, policy) for of in found for policy in MOVING)

    return all(
        over_all(WIDE, measure) < over_all(2, measure)
        for measure in ("selection_s_mean", "paused_s_mean")
    )


def _correlation(measure: str, policy: str, results: Results) -> float:
    return mean(of(measure, policy) for of in points(planetlab(results), from_x=2))


def _fewest_and_most(results: Results) -> tuple[Of, Of]:
    """X = 2, and the largest."""
    small = planetlab(results)
    *_, many = points(small, from_x=3)
    return point(small.where(x=2)), many


def _grape_asks_many(results: Results) -> bool:
    few, many = _fewest_and_most(results)
    grows = many("selection_s_mean", LOAD) > few("selection_s_mean", LOAD)
    return grows and abs(_correlation("selection_hops_correlation", LOAD, results)) <= WEAK


def _pauses_grow(results: Results) -> bool:
    few, many = _fewest_and_most(results)

    def per_hop(of: Of, policy: str) -> float:
        return of("paused_s_mean", policy) / of("moved_hops_mean", policy)

    return all(
        _correlation("paused_hops_correlation", policy, results) >= STRONG
        and per_hop(many, policy) > per_hop(few, policy)
        for policy in MOVING
    )


def _longest_pause(results: Results) -> float:
    return at_most("paused_s_max", *MOVING)(cluster(results))


def _off_two(results: Results) -> float:
    """The error of one advertisement and one confirmation for each link of a move."""
    found = [run.values["advertisements_per_hop"] for run in results.runs if run.values["moves"]]
    return max(abs(each / 2 - 1) for each in found)


CLAIMS = (
    Claim(
        "G17 trends", "With a fan-out of 4 the trends are the same",
        "thesis figure 7.14",
        ShapeRule(
            "at fan-out 4, every X: messages under load 100%, delay under delay 100% < static",
            _same_trends,
        ),
    ),
    Claim(
        "G17 reductions", "... the reductions smaller",
        "thesis figure 7.14",
        ShapeRule(
            "those two reductions, means over X, at fan-out 4 < at fan-out 2",
            _smaller_reductions,
        ),
    ),
    Claim(
        "G17 times", "... selection and waiting shorter",
        "thesis figure 7.14",
        ShapeRule(
            "selection time and pause, means over X and policies, at fan-out 4 < at fan-out 2",
            _shorter_times,
        ),
    ),
    Claim(
        "G21 POP", "POP's selection time depends on the length of the path",
        "thesis 7.2.2",
        ShapeRule(
            f"correlation of selection time and links of the path >= {STRONG}, mean over X > 1",
            lambda results: _correlation("selection_hops_correlation", POP, results) >= STRONG,
        ),
    ),
    Claim(
        "G21 GRAPE", "GRAPE's depends on where subscribers are, not on the path",
        "thesis 7.2.2",
        ShapeRule(
            "under load 100% selection takes longer at the largest X than at X = 2, and its"
            f" correlation with the links of the path is {WEAK} at most",
            _grape_asks_many,
        ),
    ),
    Claim(
        "G23", "A publisher waits longer on a longer path, and if more brokers have subscribers",
        "thesis figure 7.15c",
        ShapeRule(
            f"correlation of pause and links of the path >= {STRONG}, and the pause for each link"
            " is longer at the largest X than at X = 2, under all policies",
            _pauses_grow,
        ),
    ),
    Claim(
        "G24", "A move over ten links takes 1.5 s on the cluster",
        "thesis 5.1.3", Cost(1.5, _longest_pause),
    ),
    Claim(
        "G25", "A move causes messages on its path only: one there and one back for each link",
        "thesis 3.6, 5.1.3", Agreement(0.02, _off_two),
    ),
    Claim(
        "G26", "Moves lose nothing",
        "thesis 5.1.3",
        ShapeRule(
            "the oracle was satisfied: a run that loses, doubles or reorders has no numbers",
            lambda results: all(run.values["deliveries"] > 0 for run in results.runs),
        ),
    ),
)  # fmt: skip
