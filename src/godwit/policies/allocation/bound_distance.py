"""Why a plan has more brokers than the lower bound: a sentence for the plan.

Tested   tests/policies/allocation/test_bound_distance.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from godwit.policies.allocation.allocation_bounds import AllocationBounds
from godwit.policies.allocation.plan import PlannedBroker


def why_above(bounds: AllocationBounds, brokers: Sequence[PlannedBroker], *, uses_all: bool) -> str:
    """Empty if the plan meets the bound.  `uses_all`: the algorithm does not choose brokers."""
    if len(brokers) <= bounds.brokers:
        return ""
    if uses_all:
        return "The algorithm uses all brokers."
    n = bounds.brokers
    largest = "largest broker" if n == 1 else f"{n} largest brokers"
    match bounds.kind:
        case "bandwidth":
            reason = (
                f"the load would fill {bounds.filled:.1%} of the {largest}, if subscriptions could "
                "be divided and traffic reached a broker once"
            )
        case "matching":
            reason = (
                "the bound counts how many subscriptions the brokers can match, not how they fit "
                "together"
            )
        case _:
            reason = "the bound is weak: no limit of the brokers alone needs a second one"
    sentences = [f"{reason[0].upper()}{reason[1:]}."]
    connecting = sum(not broker.subscriptions for broker in brokers)
    if connecting:
        verb = (
            "serves no subscription; it connects"
            if connecting == 1
            else ("serve no subscription; they connect")
        )
        sentences.append(f"{connecting} of the {len(brokers)} brokers {verb} others.")
    sentences.append("A local search may find a plan with fewer.")
    return " ".join(sentences)
