"""The claims of `allocation-capacity`: those of the thesis that depend on the capacity of brokers.

Plans are made and not deployed: rates and overloads are those that the plans foresee.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from godwit.experiments.allocation.claims import (
    AUTOMATIC,
    BIN_PACKING,
    BROKERS,
    FBF,
    IOU,
    PAIRWISE_K,
    XOR,
    Of,
    of,
)
from godwit.lab.declaration import Results
from godwit.lab.rules import Claim, Reduction, ShapeRule

INCOMING, INCOMING_MAX, OVERLOADED = (
    "planned_in_per_s_mean", "planned_in_per_s_max", "planned_overloaded",
)  # fmt: skip


def at_capacities(results: Results, *algorithms: str) -> Iterator[Of]:
    """Each network and capacity for which there are plans of all of these algorithms."""
    for _, size in results.by("subscriptions"):
        for _, at in size.by("usable_per_s"):
            if {run.case["algorithm"] for run in at.runs} >= set(algorithms):
                yield of(at)


def _fewer(results: Results) -> float:
    return max(
        1 - at(BROKERS, IOU) / at(BROKERS, BIN_PACKING)
        for at in at_capacities(results, IOU, BIN_PACKING)
    )


def _more(measure: str) -> Callable[[Results], float]:
    return lambda results: max(
        at(measure, XOR) / at(measure, IOU) - 1 for at in at_capacities(results, XOR, IOU)
    )


def _one_fewer(results: Results) -> bool:
    return any(
        at(BROKERS, BIN_PACKING) == at(BROKERS, FBF) - 1
        for at in at_capacities(results, BIN_PACKING, FBF)
    )


def _both_overload(results: Results) -> bool:
    return any(
        all(at(OVERLOADED, each) > 0 for each in (AUTOMATIC, PAIRWISE_K))
        for at in at_capacities(results, AUTOMATIC, PAIRWISE_K)
    )


CLAIMS = (
    Claim(
        "R2 capacity", "With some capacity CRAM-IOU allocates 47% fewer brokers than BIN PACKING",
        "thesis 7.3.3, figures 7.18a and b", Reduction(0.47, _fewer),
    ),
    Claim(
        "R3 capacity", "With some capacity BIN PACKING allocates one broker fewer than FBF",
        "thesis 6.2.2, 7.3.3",
        ShapeRule("brokers of BIN PACKING = brokers of FBF - 1, at some capacity", _one_fewer),
    ),
    Claim(
        "R24 capacity", "With some capacity the mean message rate of XOR is 55% above IOU's",
        "thesis figure 7.21a", Reduction(0.55, _more(INCOMING)),
    ),
    Claim(
        "R24 capacity, max", "... and the highest one 93%",
        "thesis figure 7.21a", Reduction(0.93, _more(INCOMING_MAX)),
    ),
    Claim(
        "R30 capacity", "With some capacity AUTOMATIC and PAIRWISE-K both overload a broker",
        "thesis figure 7.22b",
        ShapeRule("overloaded brokers of both > 0, at some capacity", _both_overload),
    ),
)  # fmt: skip
