"""The shuffle that knows about sharing: never worse than GSH, and close to the best."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from tests.policies.staged.by_hand import best_of_all, random_case

from godwit.policies.staged.improving import improved
from godwit.policies.staged.loads import Subscribers, loads
from godwit.policies.staged.shuffle import greedy_shuffle


@pytest.mark.parametrize("seed", range(30))
def test_never_worse_than_greedy(seed: int) -> None:
    subscribers, _ = random_case(seed, n=60, q=10 + seed)
    greedy = loads(subscribers, greedy_shuffle(subscribers, 5), 5).maximum

    assert loads(subscribers, improved(subscribers, 5), 5).maximum <= greedy


@pytest.mark.parametrize("seed", range(10))
def test_close_to_the_best_of_all_assignments(seed: int) -> None:
    subscribers, _ = random_case(seed, n=8, m=3, q=8)
    best = best_of_all(subscribers, 3)

    assert loads(subscribers, improved(subscribers, 3), 3).maximum <= 1.1 * best


@pytest.mark.parametrize("seed", range(3))
def test_people_who_hold_the_same_come_together(seed: int) -> None:
    """Four kinds of people, four brokers: each kind to its own.  GSH mixes them."""
    random = Random(seed)
    kinds = [i % 4 for i in range(40)]
    random.shuffle(kinds)
    holdings = [list(range(5 * kind, 5 * kind + 5)) for kind in kinds]
    subscribers = Subscribers.of(holdings, [1.0] * 20)

    home = improved(subscribers, 4)

    assert loads(subscribers, home, 4).total.tolist() == [55.0] * 4
    assert loads(subscribers, greedy_shuffle(subscribers, 4), 4).maximum > 55.0
    assert all(len(set(home[np.array(kinds) == kind].tolist())) == 1 for kind in range(4))


@pytest.mark.parametrize(
    ("holdings", "rates", "m"),
    [
        pytest.param([], [], 2, id="nobody"),
        pytest.param([[], []], [], 2, id="nobody holds anything"),
        pytest.param([[0], [0]], [0.0], 2, id="nothing costs anything"),
        pytest.param([[0], [1]], [1.0, 2.0], 1, id="one broker"),
        pytest.param([[0]], [1.0], 4, id="more brokers than people"),
    ],
)
def test_edges(holdings: list[list[int]], rates: list[float], m: int) -> None:
    home = improved(Subscribers.of(holdings, rates), m)

    assert len(home) == len(holdings)
    assert all(0 <= j < m for j in home)


def test_more_rounds_do_not_harm() -> None:
    subscribers, _ = random_case(5, n=100, q=30)
    maxima = [
        loads(subscribers, improved(subscribers, 5, rounds), 5).maximum for rounds in (0, 10, 300)
    ]

    assert maxima == sorted(maxima, reverse=True)
