"""The claims of `allocation-heterogeneous`: those of the thesis for unequal brokers."""

from __future__ import annotations

from godwit.experiments.allocation.claims import INCOMING_MAX, IOU, MANUAL, PAIRWISE_N, up_to
from godwit.experiments.allocation.shared_claims import (
    allocated,
    delays,
    foreseen,
    hops,
    overloads,
    rates,
    utilisations,
)
from godwit.lab.declaration import Results
from godwit.lab.rules import Claim, Reduction, ShapeRule

#: R30: PAIRWISE-N overloads brokers with more subscriptions than this.
FEW = 1025


def _no_hops(results: Results) -> bool:
    return not any(results.where(algorithm=IOU).values("hops_mean"))


def _overloaded_with_more(results: Results) -> bool:
    clustered = results.where(algorithm=PAIRWISE_N, brokers=80)
    return all(
        (run.values["overloaded"] > 0) == (int(run.case["subscriptions"]) > FEW)
        for run in clustered.runs
    )


CLAIMS = (
    *allocated(0.80, "unequal"),
    Claim(
        "R20 max", "With all three steps CRAM-IOU reduces the highest message rate by up to 85%",
        "thesis 7.3.4 (E36)", Reduction(0.85, up_to(INCOMING_MAX, IOU, MANUAL)),
    ),
    *rates("unequal"),
    *utilisations("unequal"),
    *hops("unequal"),
    Claim(
        "R13 zero", "CRAM-IOU reduces the hops to 0 in all workloads",
        "thesis 7.3.3", ShapeRule("mean hops of CRAM-IOU = 0, at every size", _no_hops),
    ),
    *delays("unequal"),
    *overloads("unequal"),
    Claim(
        "R30 unequal, PAIRWISE-N", "PAIRWISE-N overloads brokers with more than 1,025"
        " subscriptions, and not with 1,025",
        "thesis figure 7.22b",
        ShapeRule(
            "overloaded brokers of PAIRWISE-N > 0 if and only if there are more than 1,025"
            " subscriptions",
            _overloaded_with_more,
        ),
    ),
    *foreseen("unequal"),
)  # fmt: skip
