"""The claims of `allocation-steps`: R18 to R23 of the thesis, and comparisons of RS1 with RS2.

STEPS names the variants: an algorithm, and where publishers are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from godwit.experiments.allocation.claims import (
    DELAYS,
    HOPS,
    INCOMING,
    INCOMING_MAX,
    INPUT,
    IOU,
    MANUAL,
    OUTPUT,
    PAIRWISE_N,
)
from godwit.lab.declaration import Results
from godwit.lab.rules import Agreement, Claim, Reduction, ShapeRule

START, GRAPED, CLUSTERED, AT_ROOT, ALL = (
    "MANUAL", "MANUAL + GRAPE", "PAIRWISE-N", "CRAM-IOU, publishers at the root", "CRAM-IOU",
)  # fmt: skip
STEPS: Mapping[str, tuple[str, str]] = {
    START: (MANUAL, "planned"),
    GRAPED: (MANUAL, "grape"),
    CLUSTERED: (PAIRWISE_N, "planned"),
    AT_ROOT: (IOU, "root"),
    ALL: (IOU, "planned"),
}
EQUAL, UNEQUAL = "equal", "unequal"
#: R18, R19, R21: "no reduction", "unchanged".
UNCHANGED = 0.10


def step(results: Results, name: str, capacity: str | None = None) -> Results:
    algorithm, publishers = STEPS[name]
    found = results.where(algorithm=algorithm, publishers=publishers)
    return found if capacity is None else found.where(capacity=capacity)


def less(measure: str, name: str, than: str, capacity: str) -> Callable[[Results], float]:
    """The share by which a variant has less of a measure than another."""
    return lambda results: (
        1
        - (
            step(results, name, capacity).mean(measure)
            / step(results, than, capacity).mean(measure)
        )
    )


def _hops_saved(results: Results) -> float:
    """The mean of both networks."""
    return sum(less(HOPS, ALL, AT_ROOT, each)(results) for each in (EQUAL, UNEQUAL)) / 2


def _unchanged(measure: str, name: str, than: str) -> Callable[[Results], float]:
    return lambda results: max(
        abs(less(measure, name, than, each)(results)) for each in (EQUAL, UNEQUAL)
    )


def _no_reduction(results: Results) -> float:
    return max(
        less(measure, GRAPED, START, each)(results)
        for measure in (INCOMING, INCOMING_MAX)
        for each in (EQUAL, UNEQUAL)
    )


def _slightly_less_input(results: Results) -> bool:
    return all(less(INPUT, ALL, AT_ROOT, each)(results) > 0 for each in (EQUAL, UNEQUAL))


def _higher_when_equal(results: Results) -> bool:
    equal, unequal = (step(results, ALL, each).mean(INCOMING_MAX) for each in (EQUAL, UNEQUAL))
    return equal > unequal


def _faster_when_unequal(name: str) -> Callable[[Results], bool]:
    return lambda results: (
        step(results, name, UNEQUAL).mean(DELAYS) < step(results, name, EQUAL).mean(DELAYS)
    )


CLAIMS = (
    Claim(
        "R18", "With subscribers at random brokers GRAPE does not reduce the message rate",
        "thesis figure 7.20a", Agreement(UNCHANGED, _no_reduction),
    ),
    Claim(
        "R19", "Clustering and a new tree reduce the mean message rate by up to 90%",
        "thesis figure 7.20a", Reduction(0.90, less(INCOMING, AT_ROOT, START, EQUAL)),
    ),
    Claim(
        "R19 max", "... but without moving publishers the highest one is that of MANUAL + GRAPE",
        "thesis figure 7.20a",
        Agreement(UNCHANGED, _unchanged(INCOMING_MAX, AT_ROOT, GRAPED)),
    ),
    Claim(
        "R20", "All three reduce the highest message rate by up to 85%, with unequal brokers",
        "thesis 7.3.4", Reduction(0.85, less(INCOMING_MAX, ALL, START, UNEQUAL)),
    ),
    Claim(
        "R20 equal", "The highest message rate of CRAM-IOU is higher with equal brokers than with"
        " unequal ones",
        "thesis 7.3.4",
        ShapeRule("highest incoming rate, equal > unequal", _higher_when_equal),
    ),
    Claim(
        "R21", "Moving publishers reduces Ir",
        "thesis 7.3.4",
        ShapeRule("mean Ir of CRAM-IOU < with publishers at the root", _slightly_less_input),
    ),
    Claim(
        "R21 output", "... and does not change Or",
        "thesis 7.3.4", Agreement(UNCHANGED, _unchanged(OUTPUT, ALL, AT_ROOT)),
    ),
    Claim(
        "R22", "Moving publishers reduces the hops by 40% on average",
        "thesis 7.3.4", Reduction(0.40, _hops_saved),
    ),
    Claim(
        "R22 unequal", "... and to 0 with unequal brokers",
        "thesis 7.3.4",
        ShapeRule(
            "mean hops of CRAM-IOU = 0, unequal",
            lambda results: step(results, ALL, UNEQUAL).mean(HOPS) == 0,
        ),
    ),
    *(
        Claim(
            f"R23 {capacity}", f"Moving publishers reduces the delay by {stated:.0%}, {capacity}"
            " brokers",
            "thesis figure 7.20b", Reduction(stated, less(DELAYS, ALL, AT_ROOT, capacity)),
        )
        for capacity, stated in ((EQUAL, 0.16), (UNEQUAL, 0.24))
    ),
    *(
        Claim(
            f"R16 {name}", f"The delay of {name} is smaller with unequal brokers, because"
            " publishers have fewer subscriptions",
            "thesis 7.3.3",
            ShapeRule("mean delay, unequal < equal", _faster_when_unequal(name)),
        )
        for name in (START, ALL)
    ),
    Claim(
        f"R16 {CLUSTERED}", "The delay of PAIRWISE-N is not: its brokers are overloaded",
        "thesis 7.3.3",
        ShapeRule(
            "mean delay, unequal > equal",
            lambda results: not _faster_when_unequal(CLUSTERED)(results),
        ),
    ),
)  # fmt: skip
