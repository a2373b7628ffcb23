"""Stage 1: who gets which broker."""

from __future__ import annotations

from random import Random

import pytest

from godwit.content.geography import GeoPoint
from godwit.errors import UsageError
from godwit.policies.staged.initial import (
    at_random,
    least_loaded,
    nearest,
    round_robin,
)

HELSINKI, TALLINN = GeoPoint(60.1699, 24.9384), GeoPoint(59.4370, 24.7536)
FIJI_WEST, FIJI_EAST = GeoPoint(-17.0, 179.9), GeoPoint(-17.0, -179.9)


def test_nearest_goes_across_the_date_line() -> None:
    assert nearest(FIJI_WEST, [HELSINKI, GeoPoint(-17.0, 178.0), FIJI_EAST]) == 2


def test_of_equally_near_brokers_the_first() -> None:
    assert nearest(HELSINKI, [TALLINN, TALLINN]) == 0


def test_round_robin_goes_round() -> None:
    assert [round_robin(i, 3) for i in range(7)] == [0, 1, 2, 0, 1, 2, 0]


def test_random_reaches_all() -> None:
    random = Random(1)
    assert {at_random(random, 4) for _ in range(100)} == {0, 1, 2, 3}


def test_b12_a_burst_of_newcomers_all_lands_on_the_least_loaded() -> None:
    """They hold nothing yet, so the loads do not change while they come."""
    reported = [5.0, 3.0, 4.0]
    assert {least_loaded(reported) for _ in range(100)} == {1}


def test_there_must_be_a_broker() -> None:
    with pytest.raises(UsageError, match="no broker"):
        nearest(HELSINKI, [])
    with pytest.raises(UsageError, match="no broker"):
        round_robin(0, 0)
    with pytest.raises(UsageError, match="no broker"):
        at_random(Random(1), 0)
    with pytest.raises(UsageError, match="no broker"):
        least_loaded([])
