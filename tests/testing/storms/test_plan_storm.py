"""Plans that the coordinator carries out on live brokers while something fails.

All seeds: `godwit replay 0 --until 500 --plans`.
"""

from __future__ import annotations

import pytest
from tests.sweeps import seeds

from godwit.testing.storms.plan_storm import plan_storm

SEEDS_PER_TEST = 3


@pytest.mark.parametrize("first", range(0, seeds(9, whole=500), SEEDS_PER_TEST))
def test_plans_are_carried_out_and_nothing_is_lost(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        storm = plan_storm(seed)
        assert storm.is_flawless, f"godwit replay {seed} --plans\n{storm}"


@pytest.mark.parametrize("seed", [91, 111])
def test_brokers_do_not_wait_for_one_that_has_left(seed: int) -> None:
    """91: one that was killed while it left; 111: one that came back into the last change."""
    storm = plan_storm(seed)
    assert storm.is_flawless, f"godwit replay {seed} --plans\n{storm}"
