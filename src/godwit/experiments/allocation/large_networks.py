"""What the experiments about 400 and 1,000 brokers share: their cases, and the thesis's claims."""

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
from godwit.experiments.allocation.scales import cases
from godwit.lab.declaration import Scale
from godwit.lab.rules import Claim, Reduction, ShapeRule

ALGORITHMS = (MANUAL, BIN_PACKING, IOU)
AWARE = (BIN_PACKING, IOU)
SCALES = {
    "small": Scale(cases(16, "equal", (400,), ALGORITHMS), seeds=1),
    "paper": Scale(
        [
            *cases(400, "equal", (16_200,), ALGORITHMS),
            *cases(1000, "equal", (22_500,), ALGORITHMS),
        ],
        seeds=1,
    ),
}


def claims_of(word: str, *, rate: str, rate_max: str) -> tuple[Claim, ...]:
    """R1 to R6 with `word` in their ids, by the measures of the mean and the highest rate."""
    return (
        Claim(
            f"R1 {word}", "CRAM-IOU allocates up to 91% fewer brokers",
            "thesis 7.3.3", Reduction(0.91, fewer_brokers(IOU)),
        ),
        Claim(
            f"R2 {word}", "CRAM-IOU allocates up to 47% fewer brokers than BIN PACKING",
            "thesis 7.3.3", Reduction(0.47, up_to(BROKERS, IOU, BIN_PACKING)),
        ),
        Claim(
            f"R4 {word}", "BIN PACKING and CRAM use less than half the brokers",
            "thesis figure 7.18b",
            ShapeRule(
                "brokers < half of all, at every size",
                everywhere(
                    lambda at: all(at(BROKERS, each) < at("available", each) / 2 for each in AWARE)
                ),
            ),
        ),
        Claim(
            f"R6 {word}", "CRAM-IOU reduces the mean message rate of a broker by up to 92%",
            "thesis figure 7.18d", Reduction(0.92, up_to(rate, IOU, MANUAL)),
        ),
        Claim(
            f"R6 {word}, max", "... and the highest one by up to 85%",
            "thesis figure 7.18d", Reduction(0.85, up_to(rate_max, IOU, MANUAL)),
        ),
    )  # fmt: skip
