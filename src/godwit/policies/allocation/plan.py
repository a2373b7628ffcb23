"""A plan: which broker serves each subscription, the tree, and where publishers go.

Paper    Cheung, thesis 6.2 and 6.3: the result that CROC sends to the brokers.
Tested   tests/policies/allocation/test_planner.py.

A plan is also a JSON document, in this form.
"""

from __future__ import annotations

import msgspec

#: Rounding of sums does not make a broker overloaded.
MATCHING_MAX = 1 + 1e-9


class PlannedBroker(msgspec.Struct, frozen=True, kw_only=True):
    """A broker that is kept, and what is expected of it."""

    id: str
    input_per_s: float
    """Publications that arrive: from its publishers and over its links."""

    output_bytes_s: float
    """To its subscribers and over its links."""

    utilisation: float
    """The share of its output bandwidth; one without bandwidth counts as one of 1 byte/s."""

    messages_per_s: float
    """In and out: the thesis's broker message rate."""

    matching_utilisation: float
    """Ir: the share of its time that matching takes."""

    subscriptions: int
    reason: str
    """Why these units are here, in a sentence."""


def is_above_capacity(broker: PlannedBroker) -> bool:
    """Whether it is loaded with more than it can do: in baselines, or if no free broker helps."""
    return broker.utilisation >= 1 or broker.matching_utilisation > MATCHING_MAX


class AllocationPlan(msgspec.Struct, frozen=True, kw_only=True):
    algorithm: str
    assignment: dict[str, str]
    """Subscription -> broker."""

    links: tuple[tuple[str, str], ...]
    """Child and parent."""

    root: str
    publishers: dict[str, str]
    """Publisher -> broker."""

    clients: dict[str, str] = {}
    """Client -> broker.  One that subscribes is where its subscriptions are."""

    brokers: tuple[PlannedBroker, ...]
    released: tuple[str, ...]
    """Brokers that are not needed."""

    lower_bound_brokers: int
    """No plan within the brokers' capacities has fewer: more than there are if there is none."""

    lower_bound_traffic_per_s: float
    """Within their capacities, brokers receive no fewer publications per second in all: of
    `input_per_s`."""

    above_bound: str = ""
    """Why there are more brokers than the bound; empty if there are not."""

    closeness_evaluations: int
    clusters: int
    """Units that the subscriptions were packed in; as many as subscriptions without clustering."""

    moves: int
    """Clients that are elsewhere now; 0 if it is not known where they are."""

    mean_hops: float
    """Brokers that a delivery passes after the first, on average."""

    seconds: float
    """What making the plan took."""
