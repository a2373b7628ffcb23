"""A thousand random overlays: every delivery is what brute force says it should be."""

from __future__ import annotations

import pytest

from godwit.simulation.random_runs import random_run

SEEDS = 1000
SEEDS_PER_TEST = 25


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_random_trees_deliver_exactly_what_was_asked_for(first: int) -> None:
    deliveries = 0
    for seed in range(first, first + SEEDS_PER_TEST):
        run = random_run(seed)
        assert run.oracle.is_satisfied, f"replay with: godwit replay {seed}\n{run}"
        assert run.refusals == 0, f"seed {seed}: the random clients only do what is allowed"
        deliveries += run.statistics.deliveries
    assert deliveries > 0, "a run without deliveries proves nothing"
