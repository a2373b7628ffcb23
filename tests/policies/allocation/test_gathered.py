"""What was gathered, as JSON."""

from __future__ import annotations

import msgspec
import pytest

from godwit.policies.allocation.gathered import Gathered

DOCUMENT = b"""
{"publishers": [{"id": "p1", "rate_per_s": 50, "bandwidth_bytes_s": 50000, "last_id": 199}],
 "brokers": [{"id": "B1", "output_bandwidth_bytes_s": 1e6, "matching_delay_base_s": 1e-4,
              "matching_delay_per_subscription_s": 1e-6}],
 "subscriptions": [{"id": "s1", "first_id": {"p1": 100}, "bits": {"p1": "0110"}}]}
"""


def test_the_form_of_the_document() -> None:
    gathered = msgspec.json.decode(DOCUMENT, type=Gathered)
    assert gathered.vector_length == 1280
    assert gathered.subscriptions[0].bits == {"p1": "0110"}
    assert gathered.brokers[0].matching_delay_per_subscription_s == 1e-6
    again = msgspec.json.decode(msgspec.json.encode(gathered), type=Gathered)
    assert again == gathered


def test_a_field_that_is_missing_is_named() -> None:
    with pytest.raises(msgspec.ValidationError, match="last_id"):
        msgspec.json.decode(DOCUMENT.replace(b', "last_id": 199', b""), type=Gathered)
