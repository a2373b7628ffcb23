"""Plans that the coordinator carries out while a broker is killed in a phase of a step.

All seeds: `godwit replay 0 --until 500 --plans --faults`.
"""

from __future__ import annotations

import pytest
from tests.sweeps import seeds

from godwit.testing.storms.kill_storm import kill_storm

SEEDS_PER_TEST = 3


@pytest.mark.parametrize("first", range(0, seeds(9, whole=501), SEEDS_PER_TEST))
def test_a_broker_that_is_killed_in_a_plan_recovers_and_nothing_is_lost(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        storm = kill_storm(seed)
        assert storm.is_flawless, f"godwit replay {seed} --plans --faults\n{storm}"
