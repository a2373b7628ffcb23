"""The claims of `allocation-large`: those of figures 7.18b and d for the large networks."""

from __future__ import annotations

from godwit.experiments.allocation.claims import (
    BIN_PACKING,
    BROKERS,
    INCOMING,
    INCOMING_MAX,
    IOU,
    MANUAL,
    everywhere,
    fewer_brokers,
    up_to,
)
from godwit.experiments.allocation.shared_claims import predictions
from godwit.lab.rules import Claim, Reduction, ShapeRule

AWARE = (BIN_PACKING, IOU)

CLAIMS = (
    Claim(
        "R1 large", "CRAM-IOU allocates up to 91% fewer brokers",
        "thesis 7.3.3", Reduction(0.91, fewer_brokers(IOU)),
    ),
    Claim(
        "R2 large", "CRAM-IOU allocates up to 47% fewer brokers than BIN PACKING",
        "thesis 7.3.3", Reduction(0.47, up_to(BROKERS, IOU, BIN_PACKING)),
    ),
    Claim(
        "R4 large", "BIN PACKING and CRAM use less than half the brokers",
        "thesis figure 7.18b",
        ShapeRule(
            "brokers < half of all, at every size",
            everywhere(
                lambda at: all(at(BROKERS, each) < at("available", each) / 2 for each in AWARE)
            ),
        ),
    ),
    Claim(
        "R6 large", "CRAM-IOU reduces the mean message rate of a broker by up to 92%",
        "thesis figure 7.18d", Reduction(0.92, up_to(INCOMING, IOU, MANUAL)),
    ),
    Claim(
        "R6 large, max", "... and the highest one by up to 85%",
        "thesis figure 7.18d", Reduction(0.85, up_to(INCOMING_MAX, IOU, MANUAL)),
    ),
    *predictions("large", AWARE),
)  # fmt: skip
