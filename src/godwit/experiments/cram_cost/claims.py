"""The claims of `cram-cost`: R17 and R34 to R36 of the thesis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log

from godwit.experiments.allocation.claims import (
    AUTOMATIC,
    BIN_PACKING,
    FBF,
    IOU,
    PAIRWISE_K,
    PAIRWISE_N,
)
from godwit.experiments.cram_cost.runs import PLAN, SEARCH, STOP_RULE
from godwit.lab.declaration import NotMeasuredError, Results
from godwit.lab.rules import Claim, Cost, Reduction, ShapeRule

TIME = "plan_s"
SIMPLE = (AUTOMATIC, FBF, BIN_PACKING)
CLUSTERING = (PAIRWISE_K, PAIRWISE_N, IOU)
EQUAL, UNEQUAL = "equal", "unequal"
#: R17: an exponent up to this is "linear"; one between these two is "quadratic".
LINEAR, QUADRATIC, CUBIC = 1.25, 1.5, 2.5


def timed(results: Results, algorithm: str, capacity: str) -> list[tuple[int, float]]:
    """Subscriptions and seconds, in order."""
    found = results.where(study=PLAN, algorithm=algorithm, capacity=capacity)
    pairs = [(int(n), at.mean(TIME)) for n, at in found.by("subscriptions")]
    if len(pairs) < 2:
        raise NotMeasuredError("one size only")
    return sorted(pairs)


def growth(results: Results, algorithm: str, capacity: str = EQUAL) -> float:
    """The exponent with which the time grows, from the fewest subscriptions to the most."""
    (fewest, fast_s), *_, (most, slow_s) = timed(results, algorithm, capacity)
    return log(slow_s / fast_s) / log(most / fewest)


def _saved(capacity: str) -> Callable[[Results], float]:
    """The share of CRAM-IOU's time that the slower PAIRWISE saves, with the most subscriptions."""

    def saved(results: Results) -> float:
        longest = [timed(results, each, capacity)[-1][1] for each in (PAIRWISE_K, PAIRWISE_N)]
        return 1 - max(longest) / timed(results, IOU, capacity)[-1][1]

    return saved


def _slowest(results: Results) -> bool:
    own_s = timed(results, IOU, EQUAL)[-1][1]
    others = (*SIMPLE, PAIRWISE_K, PAIRWISE_N)
    return all(timed(results, each, EQUAL)[-1][1] < own_s for each in others)


def _shortest(results: Results) -> bool:
    """AUTOMATIC and the sorting algorithms take less time than those that cluster."""
    longest = max(timed(results, each, EQUAL)[-1][1] for each in SIMPLE)
    return all(timed(results, each, EQUAL)[-1][1] > longest for each in CLUSTERING)


def _all(algorithms: Sequence[str], holds: Callable[[float], bool]) -> Callable[[Results], bool]:
    return lambda results: all(holds(growth(results, each)) for each in algorithms)


def largest_search(results: Results, rule: str) -> Results:
    """The search among the most groups."""
    found = results.where(study=SEARCH, search=rule)
    return found.where(subscriptions=max(int(n) for n, _ in found.by("subscriptions")))


def _reduced(results: Results) -> float:
    found = largest_search(results, "exact")
    return 1 - found.mean("gifs") / found.mean("subscriptions")


def _not_evaluated(rule: str) -> Callable[[Results], float]:
    def share(results: Results) -> float:
        found = largest_search(results, rule)
        return 1 - found.mean("evaluations") / found.mean("pairs")

    return share


def _finds_all(results: Results) -> bool:
    return not any(results.where(study=SEARCH, search="exact").values("missed"))


CLAIMS = (
    Claim(
        "R17 simple", "AUTOMATIC and the sorting algorithms take the least time",
        "thesis figure 7.19e",
        ShapeRule("their time < that of PAIRWISE and CRAM-IOU, most subscriptions", _shortest),
    ),
    Claim(
        "R17 linear", "... which is linear in the number of subscriptions",
        "thesis figure 7.19e",
        ShapeRule(f"exponents of growth <= {LINEAR}", _all(SIMPLE, lambda e: e <= LINEAR)),
    ),
    Claim(
        "R17 CRAM", "CRAM-IOU takes the most time",
        "thesis figure 7.19e",
        ShapeRule("time of CRAM-IOU > all others, most subscriptions", _slowest),
    ),
    *(
        Claim(
            f"R17 PAIRWISE, {capacity}", f"PAIRWISE takes {stated:.0%} less time, {capacity}"
            " brokers",
            "thesis figure 7.19e", Reduction(stated, _saved(capacity)),
        )
        for capacity, stated in ((EQUAL, 0.15), (UNEQUAL, 0.25))
    ),
    Claim(
        "R17 quadratic", "The time of PAIRWISE and CRAM-IOU is quadratic",
        "thesis figure 7.19e",
        ShapeRule(
            f"exponents of growth from {QUADRATIC} to {CUBIC}",
            _all(CLUSTERING, lambda e: QUADRATIC <= e <= CUBIC),
        ),
    ),
    Claim(
        "R34", "Groups of identical filters are up to 61% fewer than 8,000 subscriptions",
        "thesis 6.2.3", Reduction(0.61, _reduced),
    ),
    Claim(
        "R35", "The search saves 94% of the closeness evaluations of all pairs",
        "thesis 6.2.3; exact bounds", Reduction(0.94, _not_evaluated("exact")),
    ),
    Claim(
        "R35 stop rule", "... with the thesis's rule",
        "thesis 6.2.3", Reduction(0.94, _not_evaluated(STOP_RULE)),
    ),
    Claim(
        "R35 exact", "The bounds miss no partner",
        "our own", ShapeRule("missed = 0 with exact bounds", _finds_all),
    ),
    Claim(
        "R36", "Inserting all groups into the poset takes 2 s",
        "thesis 6.2.3", Cost(2.0, lambda r: largest_search(r, "exact").mean("poset_s")),
    ),
)  # fmt: skip
