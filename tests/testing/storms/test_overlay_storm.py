"""Live networks that change from overlay to overlay, with failures and without.

All seeds: `godwit replay 1 --until 500 --reshaping --overlay any --faults`; every other one is such
a storm.
"""

from __future__ import annotations

import pytest
from tests.sweeps import seeds

from godwit.testing.storms.overlay_storm import overlay_storm

SEEDS_PER_TEST = 5


@pytest.mark.parametrize("first", range(0, seeds(15, whole=500), SEEDS_PER_TEST))
def test_overlays_change_live_and_nothing_is_lost(first: int) -> None:
    done = 0
    for seed in range(first, first + SEEDS_PER_TEST):
        storm = overlay_storm(seed)
        assert storm.is_flawless, f"overlay_storm({seed})\n{storm}"
        done += sum(": done" in line for line in storm.happened)
    assert done > 0
