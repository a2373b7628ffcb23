"""Predicted against achieved: what a session should have done to the load of a broker, and did.

Paper    Cheung, thesis 7.1.2, figure 7.9: the estimation error of Ir, d and Or.
Words    estimated -> predicted; measured after the session -> achieved; error -> the difference of
         the two as a part of what was achieved.
Departs  1. Each side records its own: the acceptor knows the prediction from the offloader.
         2. Measured when the load has settled, the matching delay as well: it is not the line's.
            A session that an overload starts earlier replaces the prediction: it was made on other
            terms.
Tested   tests/policies/offload/test_parts.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from godwit.broker.effects import Decision
from godwit.policies.offload.broker_load import BrokerInfo

ACHIEVED = "achieved"
#: Values below it are noise: their relative error means nothing.
VALUE_MIN = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    session: str
    source: str
    target: str
    planned: int
    """Clients that should have moved."""

    moved: int
    before: BrokerInfo
    predicted: BrokerInfo


def error_of(predicted: float, achieved: float) -> float:
    """The estimation error; 0 if both are nothing."""
    if abs(achieved) < VALUE_MIN:
        return 0.0 if abs(predicted) < VALUE_MIN else 1.0
    return abs(predicted - achieved) / abs(achieved)


def achieved(prediction: Prediction, now: BrokerInfo) -> Decision:
    """What came out, as a decision for log, trace and metrics; `now` is the settled load."""
    before, predicted = prediction.before, prediction.predicted
    reason: dict[str, float | str] = {
        "session": prediction.session,
        "planned": prediction.planned,
        "moved": prediction.moved,
        "subscriptions_predicted": predicted.subscriptions,
        "subscriptions_achieved": now.subscriptions,
    }
    for name, old, estimate, value in (
        ("input", before.input_utilisation, predicted.input_utilisation, now.input_utilisation),
        ("match", before.matching_delay_s, predicted.matching_delay_s, now.matching_delay_s),
        ("output", before.output_utilisation, predicted.output_utilisation, now.output_utilisation),
    ):
        reason[f"{name}_before"] = old
        reason[f"{name}_predicted"] = estimate
        reason[f"{name}_achieved"] = value
        reason[f"{name}_error"] = error_of(estimate, value)
    return Decision(ACHIEVED, now.broker, prediction.source, prediction.target, reason)
