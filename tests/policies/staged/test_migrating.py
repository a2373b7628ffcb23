"""Stage 2: LDM and SDM against the algorithm in plain Python, B13, and how it ends (E25)."""

from __future__ import annotations

import numpy as np
import pytest
from tests.policies.staged.by_hand import migrate_by_hand, not_above, printed, random_case, strict

from godwit.policies.staged.loads import Loads, Subscribers, loads
from godwit.policies.staged.migrating import Strategy, migrating

SEEDS = range(30)


@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("seed", SEEDS)
def test_steps_are_those_of_the_paper(seed: int, strategy: Strategy) -> None:
    subscribers, home = random_case(seed)
    sdm = strategy is Strategy.SDM
    expected, ended = migrate_by_hand(subscribers, home.tolist(), 5, 0.02, sdm=sdm)

    steps = migrating(subscribers, home, 5, 0.02, 0.0, strategy)

    assert ended
    assert [(step.subscriber, step.source, step.target) for step in steps] == expected


@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("seed", SEEDS)
def test_b13_sorted_loads_fall_lexicographically(seed: int, strategy: Strategy) -> None:
    subscribers, home = random_case(seed)
    state = Loads(subscribers, home, 5)
    for step in migrating(subscribers, home, 5, 0.0, 0.0, strategy):
        before = sorted(state.total.tolist(), reverse=True)
        top = before.count(before[0])
        state.move(step.subscriber, step.target)
        after = sorted(state.total.tolist(), reverse=True)
        assert after < before
        assert after[0] < before[0] or after.count(before[0]) < top


def test_e25_only_the_strict_rule_always_ends() -> None:
    """150 random brokers: "not above" and the printed test go round for ever on some."""
    cases = [random_case(seed, n=12, q=8) for seed in range(150)]
    endless = {
        rule.__name__: sum(
            not migrate_by_hand(subscribers, home.tolist(), 5, 0.02, rule=rule, turns_max=300)[1]
            for subscribers, home in cases
        )
        for rule in (strict, not_above, printed)
    }

    assert endless["strict"] == 0
    assert 0 < endless["not_above"] < endless["printed"]


def test_it_stops_once_the_brokers_are_balanced_enough() -> None:
    subscribers, home = random_case(3, n=200)
    for alpha in (0.3, 0.1, 0.05):
        moved = home.copy()
        steps = migrating(subscribers, home, 5, alpha, 0.0, Strategy.LDM)
        for step in steps[:-1]:
            moved[step.subscriber] = step.target
        assert loads(subscribers, moved, 5).cov > alpha
        moved[steps[-1].subscriber] = steps[-1].target
        assert loads(subscribers, moved, 5).cov <= alpha


def test_below_the_mean_load_beta_nobody_moves() -> None:
    subscribers, home = random_case(3)
    mean = loads(subscribers, home, 5).mean

    assert migrating(subscribers, home, 5, 0.0, mean * 1.01, Strategy.LDM) == []
    assert migrating(subscribers, home, 5, 0.0, mean * 0.99, Strategy.LDM)


def test_sdm_goes_where_it_shares_and_ldm_where_there_is_least() -> None:
    """Broker 0 has most; 1 has least; 2 is below the mean and holds what the heaviest holds."""
    subscribers = Subscribers.of([[0, 1], [2], [2], [0, 1, 3]], [5.0, 5.0, 9.0, 1.0])
    home = np.array([2, 0, 0, 0], np.int32)

    ldm = migrating(subscribers, home, 3, 0.1, 0.0, Strategy.LDM)[0]
    sdm = migrating(subscribers, home, 3, 0.1, 0.0, Strategy.SDM)[0]

    assert (ldm.subscriber, ldm.target) == (3, 1)
    assert (sdm.subscriber, sdm.target) == (3, 2)
    assert ldm.why.startswith(
        "LDM: its broker is the most loaded, 49 bytes/s; the target then has 22"
    )
    assert "shares 10 with it" in sdm.why


def test_who_costs_nothing_stays() -> None:
    subscribers = Subscribers.of([[0], [], [1]], [5.0, 0.0])

    assert migrating(subscribers, np.zeros(3, np.int32), 2, 0.1, 0.0, Strategy.LDM) == []


def test_many_candidates_that_cannot_move_are_all_looked_at() -> None:
    """Only the lightest of 400 can go; blocks of candidates must not lose it."""
    rates = [100.0] * 400 + [1.0, 1000.0]
    holdings = [[k] for k in range(400)] + [[400], [401]]
    home = np.array([0] * 401 + [1], np.int32)
    total = loads(Subscribers.of(holdings, rates), home, 2).total
    rates[401] += (total[0] - total[1]) / 2 - 50.0  # A move of 100 would lift 1 above 0.
    subscribers = Subscribers.of(holdings, rates)

    steps = migrating(subscribers, home, 2, 0.0, 0.0, Strategy.LDM)

    assert steps[0].subscriber == 400
