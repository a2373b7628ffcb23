"""How large units may become, by hand."""

from __future__ import annotations

import pytest

from godwit.errors import UsageError
from godwit.policies.allocation.capacity import BrokerCapacity
from godwit.policies.large_allocation.unit_limits import UnitLimits
from godwit.profile.matching_delay import MatchingDelay

FAST, SLOW = MatchingDelay(0.001, 0.0), MatchingDelay(0.002, 0.01)
BROKERS = [
    BrokerCapacity("B1", 1_000.0, FAST),
    BrokerCapacity("B2", 800.0, SLOW),
    BrokerCapacity("B3", 100.0, MatchingDelay(9.0, 9.0)),
]


def limits(total_bytes_s: float = 1_500.0, share: float = 0.25) -> UnitLimits:
    return UnitLimits.of(BROKERS, total_bytes_s, 400, share)


def test_the_limit_is_a_share_of_the_smallest_broker_that_the_load_needs() -> None:
    assert limits(900.0).bandwidth_bytes_s == 250.0
    assert limits(900.0).matching == FAST
    # B1 alone cannot send 1,000 bytes/s: bandwidth must remain.
    assert limits(1_000.0).bandwidth_bytes_s == 200.0
    assert limits(1_000.0).matching == SLOW
    assert limits(5_000.0).bandwidth_bytes_s == 25.0


def test_a_unit_takes_its_share_of_bandwidth_and_matching() -> None:
    found = limits()
    assert found.allows(200.0, 1.0, 10)
    assert not found.allows(200.1, 1.0, 10)
    # With 4 x 10 subscriptions d is 0.09 s.
    assert found.allows(1.0, 1 / 0.09, 10)
    assert not found.allows(1.0, 1 / 0.09 + 0.01, 10)


def test_a_gif_becomes_as_many_units_as_it_needs() -> None:
    found = limits()
    assert found.parts(20.0, 1.0, 10, 10) == 1
    assert found.parts(20.0, 1.0, 11, 11) == 2
    # At 10 a second B2 matches (1/10 - 0.01) / 0.002 = 45 subscriptions; a quarter are 11.
    assert found.parts(0.01, 10.0, 11, 11) == 1
    assert found.parts(0.01, 10.0, 12, 12) == 2
    assert found.parts(0.01, 10.0, 6, 12) == 2


def test_a_subscriber_that_is_too_large_is_a_unit_by_itself() -> None:
    assert limits().parts(900.0, 1.0, 7, 7) == 7
    assert limits().parts(1.0, 1e9, 7, 7) == 7


def test_subscribers_that_receive_nothing_are_spread_evenly() -> None:
    # 400 subscriptions on 2 brokers: a quarter of 200 in each unit.
    assert limits().parts(0.0, 0.0, 100, 100) == 2
    assert limits().parts(0.0, 0.0, 101, 101) == 3


@pytest.mark.parametrize("share", [0.0, 1.1])
def test_a_share_is_a_part_of_a_broker(share: float) -> None:
    with pytest.raises(UsageError, match="above 0 and at most 1"):
        limits(share=share)
