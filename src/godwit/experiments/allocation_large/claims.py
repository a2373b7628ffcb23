"""The claims of `allocation-large`: those of figures 7.18b and d for the large networks."""

from __future__ import annotations

from godwit.experiments.allocation.claims import INCOMING, INCOMING_MAX
from godwit.experiments.allocation.large_networks import AWARE, claims_of
from godwit.experiments.allocation.shared_claims import predictions

CLAIMS = (
    *claims_of("large", rate=INCOMING, rate_max=INCOMING_MAX),
    *predictions("large", AWARE),
)
