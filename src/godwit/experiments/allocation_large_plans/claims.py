"""The claims of `allocation-large-plans`: those of `allocation-large`, as planned."""

from __future__ import annotations

from godwit.experiments.allocation.claims import IOU
from godwit.experiments.allocation.large_networks import claims_of
from godwit.experiments.allocation.shared_claims import ABOVE_BOUND, OWN
from godwit.lab.rules import Agreement, Claim

CLAIMS = (
    *claims_of("planned", rate="planned_in_per_s_mean", rate_max="planned_in_per_s_max"),
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
