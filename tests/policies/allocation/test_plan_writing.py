"""Reasons and figures of a plan."""

from __future__ import annotations

import pytest
from tests.policies.allocation.scenes import (
    bits_of,
    brokers,
    gathered,
    publisher,
    subscription,
)

from godwit.policies.allocation import AllocationSettings, make_plan


def test_a_broker_says_why_its_units_are_there() -> None:
    document = gathered(
        [subscription(f"s{i}", "1" * 64) for i in range(4)], brokers(4, 1300), [publisher()]
    )
    plan = make_plan(document, AllocationSettings(algorithm="bin-packing", overlay=True))
    reasons = {found.id: found.reason for found in plan.brokers}
    assert reasons[plan.root].startswith("Serves no subscription; it connects B01, B02")
    leaf = "2 units of 2 subscriptions of p1 share traffic: 128 deliveries/s from 64 publications/s"
    assert reasons["B01"].startswith(leaf)
    home = plan.publishers["p1"]
    assert "publisher p1 causes the least traffic here" in reasons[home]


def test_the_figures_of_a_broker() -> None:
    """64 publications/s in; 64 and 32 out, of 10 bytes each, of 2,000 bytes/s; d(2) = 5 ms."""
    document = gathered(
        [subscription("s1", "1" * 64), subscription("s2", bits_of(range(32)))],
        brokers(1, 2000, base_s=0.001, each_s=0.002),
    )
    (found,) = make_plan(document).brokers
    assert (found.input_per_s, found.output_bytes_s, found.messages_per_s) == (64, 960, 160)
    assert found.utilisation == pytest.approx(0.48)
    assert found.matching_utilisation == pytest.approx(64 * 0.005)
    assert found.subscriptions == 2


def test_hops_are_links_that_a_delivery_crosses() -> None:
    document = gathered(
        [subscription(f"s{i}", "1" * 64) for i in range(4)], brokers(3, 1300), [publisher()]
    )
    at_root = make_plan(
        document, AllocationSettings(algorithm="bin-packing", relocate_publishers=False)
    )
    assert at_root.publishers == {"p1": at_root.root}
    assert at_root.mean_hops == 1


def test_without_subscriptions_the_reason_says_so() -> None:
    (found,) = make_plan(gathered([], publishers=[])).brokers
    assert found.reason == "The only broker that is kept; there are no subscriptions."
