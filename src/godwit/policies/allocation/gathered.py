"""What was gathered of a network: all that a plan is made from, and a JSON file.

Paper    Cheung, thesis 6.1: the contents of the answers (BIA) of all brokers.
Words    advId -> publisher id; counter -> first_id; Lbv -> vector_length.
Departs  1. Each entry may also say where a client is now and which brokers are linked: a plan that
            weighs the cost of moving needs it.  Files without these fields are complete.
         2. A publisher may say its first id: before it has sent as many publications as a vector
            has bits, shares count those that were sent (open in the thesis).  Without it, the
            lowest id in any subscription's vector stands for it.
Tested   tests/policies/allocation/test_gathered.py.

    {"publishers":    [{"id": "p1", "rate_per_s": 50, "bandwidth_bytes_s": 50000, "last_id": 199}],
     "brokers":       [{"id": "B1", "output_bandwidth_bytes_s": 1e6,
                        "matching_delay_base_s": 1e-4, "matching_delay_per_subscription_s": 1e-6}],
     "subscriptions": [{"id": "s1", "first_id": {"p1": 100}, "bits": {"p1": "0110"}}]}

Character i of `bits` says whether publication `first_id` + i was delivered.
"""

from __future__ import annotations

import msgspec

from godwit.profile.bit_vector import LENGTH


class GatheredPublisher(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    rate_per_s: float
    bandwidth_bytes_s: float
    last_id: int
    first_id: int | None = None
    """The first publication that could be recorded."""

    broker: str | None = None
    """Where it is now."""

    client: str | None = None
    """The client that publishes, if its name is not `id`."""


class GatheredBroker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    output_bandwidth_bytes_s: float
    matching_delay_base_s: float
    matching_delay_per_subscription_s: float
    address: str | None = None
    neighbours: tuple[str, ...] = ()


class GatheredSubscription(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    first_id: dict[str, int] = {}
    bits: dict[str, str] = {}
    broker: str | None = None
    client: str | None = None
    """The subscriber; it moves as a whole."""


class Gathered(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    publishers: tuple[GatheredPublisher, ...]
    brokers: tuple[GatheredBroker, ...]
    subscriptions: tuple[GatheredSubscription, ...]
    vector_length: int = LENGTH
    missing: tuple[str, ...] = ()
    """Brokers that did not answer."""
