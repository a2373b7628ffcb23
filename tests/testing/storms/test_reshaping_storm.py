"""Live networks that change their shape while brokers, links and the coordinator fail.

All seeds: `godwit replay 0 --until 2000 --reshaping --faults`; every other one is such a storm.
"""

from __future__ import annotations

import pytest
from tests.sweeps import seeds

from godwit.testing.storms.reshaping_storm import reshaping_storm

SEEDS_PER_TEST = 5


@pytest.mark.parametrize("first", range(1, seeds(40, whole=2_000), 2 * SEEDS_PER_TEST))
def test_whatever_fails_nothing_is_lost_and_there_is_one_shape(first: int) -> None:
    for seed in range(first, first + 2 * SEEDS_PER_TEST, 2):
        storm = reshaping_storm(seed)
        assert storm.is_flawless, f"godwit replay {seed} --reshaping --faults\n{storm}"


def test_a_broker_that_crashes_in_the_second_of_two_changes_comes_back_into_that() -> None:
    storm = reshaping_storm(131)
    assert storm.is_flawless, f"godwit replay 131 --reshaping --faults\n{storm}"


def test_storms_have_changes_that_are_done_and_brokers_that_crash() -> None:
    happened = "\n".join(line for seed in range(6) for line in reshaping_storm(seed).happened)
    assert ": done" in happened
    assert "is down for" in happened
