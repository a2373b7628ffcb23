"""The claims of `allocation-large-plans`: those of `allocation-large`, as planned."""

from __future__ import annotations

from godwit.experiments.allocation.claims import (
    BIN_PACKING,
    BROKERS,
    IOU,
    MANUAL,
    everywhere,
    fewer_brokers,
    up_to,
)
from godwit.experiments.allocation.shared_claims import ABOVE_BOUND, OWN
from godwit.lab.rules import Agreement, Claim, Reduction, ShapeRule

AWARE = (BIN_PACKING, IOU)
RATE, RATE_MAX = "planned_in_per_s_mean", "planned_in_per_s_max"

CLAIMS = (
    Claim(
        "R1 planned", "CRAM-IOU allocates up to 91% fewer brokers",
        "thesis 7.3.3", Reduction(0.91, fewer_brokers(IOU)),
    ),
    Claim(
        "R2 planned", "CRAM-IOU allocates up to 47% fewer brokers than BIN PACKING",
        "thesis 7.3.3", Reduction(0.47, up_to(BROKERS, IOU, BIN_PACKING)),
    ),
    Claim(
        "R4 planned", "BIN PACKING and CRAM use less than half the brokers",
        "thesis figure 7.18b",
        ShapeRule(
            "brokers < half of all, at every size",
            everywhere(
                lambda at: all(at(BROKERS, each) < at("available", each) / 2 for each in AWARE)
            ),
        ),
    ),
    Claim(
        "R6 planned", "CRAM-IOU reduces the mean message rate of a broker by up to 92%",
        "thesis figure 7.18d", Reduction(0.92, up_to(RATE, IOU, MANUAL)),
    ),
    Claim(
        "R6 planned, max", "... and the highest one by up to 85%",
        "thesis figure 7.18d", Reduction(0.85, up_to(RATE_MAX, IOU, MANUAL)),
    ),
    Claim(
        "plan-3 large", "CRAM-IOU allocates at most 5% more brokers than any plan needs", OWN,
        Agreement(
            ABOVE_BOUND,
            lambda results: max(
                run.values["brokers"] / run.values["lower_bound_brokers"] - 1
                for run in results.where(algorithm=IOU).runs
            ),
        ),
    ),
)  # fmt: skip
