"""Random runs with load balancing: nothing is lost, no broker stays BUSY, tables are right.

`godwit replay SEED --balancing` replays one; `godwit replay 0 --until 1000 --balancing` is the long
run.  Every other seed is a storm, in which brokers crash.
"""

from __future__ import annotations

from collections import Counter

import pytest
from tests.sweeps import seeds

from godwit.testing.random_balancing import random_balancing
from godwit.testing.storms.balancing_storm import balancing_storm

SEEDS, STORMS, PER_TEST = seeds(4, whole=100), seeds(8, whole=200), 4


@pytest.mark.parametrize("first", range(0, SEEDS, PER_TEST))
def test_random_clusters_that_balance_keep_the_promise(first: int) -> None:
    runs = [random_balancing(seed) for seed in range(first, first + PER_TEST)]
    assert not [str(run) for run in runs if not run.is_flawless]
    decisions = sum((run.decisions for run in runs), Counter[str]())
    assert decisions["session"] >= 4
    assert decisions["asked"] >= 4


@pytest.mark.filterwarnings("default::ResourceWarning")
@pytest.mark.parametrize("first", range(0, STORMS, PER_TEST))
def test_storms_keep_it_too(first: int) -> None:
    storms = [balancing_storm(seed) for seed in range(first, first + PER_TEST)]
    assert not [str(each) for each in storms if not each.is_flawless]
    decided = sum((each.decided for each in storms), Counter[str]())
    assert decided["session"] >= 4
    assert decided["asked"] >= 4
    assert sum(len(each.happened) for each in storms) >= 4


def test_the_same_seed_is_the_same_run() -> None:
    first, second = random_balancing(1), random_balancing(1)
    assert str(first) == str(second)
    assert str(balancing_storm(2)) == str(balancing_storm(2))
