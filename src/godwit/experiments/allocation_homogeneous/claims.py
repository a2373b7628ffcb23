"""The claims of `allocation-homogeneous`: R1 to R16, R29 and R30 of the thesis."""

from __future__ import annotations

from godwit.experiments.allocation.claims import (
    DELAYS,
    INCOMING,
    INCOMING_MAX,
    IOU,
    MANUAL,
    OUTPUT,
    PAIRWISE_N,
    everywhere,
    in_order,
    more,
    up_to,
)
from godwit.experiments.allocation.shared_claims import (
    allocated,
    delays,
    foreseen,
    hops,
    overloads,
    rates,
    utilisations,
)
from godwit.lab.declaration import NotMeasuredError, Results
from godwit.lab.rules import Claim, Cost, Reduction, ShapeRule

LONGEST_PATH = 11


def _longest_path(results: Results) -> bool:
    tree = results.where(brokers=80, algorithm=MANUAL)
    return set(tree.values("longest_path")) == {LONGEST_PATH}


def _never_overloaded(results: Results) -> bool:
    some = results.only(
        lambda run: run.case["algorithm"] in (MANUAL, PAIRWISE_N), "MANUAL or PAIRWISE-N"
    )
    if not some.runs:
        raise NotMeasuredError("neither MANUAL nor PAIRWISE-N")
    return not any(some.values("overloaded"))


CLAIMS = (
    *allocated(0.91, "equal"),
    Claim(
        "R6", "CRAM-IOU reduces the mean message rate of a broker by up to 92%",
        "thesis figure 7.18d", Reduction(0.92, up_to(INCOMING, IOU, MANUAL)),
    ),
    Claim(
        "R6 max", "... and the highest one by up to 85%",
        "thesis figure 7.18d", Reduction(0.85, up_to(INCOMING_MAX, IOU, MANUAL)),
    ),
    *rates("equal"),
    *utilisations("equal"),
    Claim(
        "R12", "Or of PAIRWISE-N is below MANUAL's",
        "thesis figure 7.19b",
        ShapeRule(
            "mean Or of PAIRWISE-N < MANUAL, at every size", in_order(OUTPUT, MANUAL, PAIRWISE_N)
        ),
    ),
    *hops("equal"),
    Claim(
        "R14", "The longest path of 80 brokers with a fan-out of 2 is 11 hops",
        "thesis 7.3.3, computed", ShapeRule("longest path of MANUAL = 11", _longest_path),
    ),
    Claim(
        "R15", "The delay of PAIRWISE-N is up to 56% above MANUAL's",
        "thesis figure 7.19d", Cost(0.56, more(DELAYS, PAIRWISE_N, MANUAL)),
    ),
    Claim(
        "R15 direction", "... but higher",
        "thesis figure 7.19d",
        ShapeRule(
            "delay of PAIRWISE-N > MANUAL, at every size",
            everywhere(lambda at: at(DELAYS, PAIRWISE_N) > at(DELAYS, MANUAL)),
        ),
    ),
    *delays("equal"),
    *overloads("equal"),
    Claim(
        "R30 equal, PAIRWISE-N", "MANUAL and PAIRWISE-N overload no broker",
        "thesis 7.3.3",
        ShapeRule("overloaded brokers = 0, at every size", _never_overloaded),
    ),
    *foreseen("equal"),
)  # fmt: skip
