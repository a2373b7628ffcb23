"""No assignment is below a lower bound."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from tests.policies.staged.by_hand import best_of_all, random_case

from godwit.policies.staged.bounds import Bound, lower_bound
from godwit.policies.staged.loads import Subscribers, loads
from godwit.policies.staged.shuffle import greedy_shuffle


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("q", [3, 6, 12])
@pytest.mark.parametrize("seed", range(8))
def test_the_best_of_all_assignments_is_not_below(seed: int, q: int, m: int) -> None:
    subscribers, _ = random_case(seed, n=7, m=m, q=q)

    assert lower_bound(subscribers, m).load <= best_of_all(subscribers, m) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("holdings", "rates", "m", "load", "kind"),
    [
        pytest.param([[0], [1]], [1.0, 1.0], 2, 2.0, "total", id="nothing is shared"),
        pytest.param([[0], [1]], [1.0, 9.0], 2, 18.0, "heaviest", id="one cannot be split"),
        pytest.param([[0]] * 3, [8.0], 2, 24.0, "heaviest", id="two of three meet"),
        pytest.param([[0]] * 6, [1.0], 2, 4.0, "mixing", id="everybody holds the same"),
    ],
)
def test_each_argument_where_it_is_the_best(
    holdings: list[list[int]], rates: list[float], m: int, load: float, kind: str
) -> None:
    bound = lower_bound(Subscribers.of(holdings, rates), m)

    assert bound.load == pytest.approx(load, rel=1e-6)
    assert bound.kind == kind


@pytest.mark.parametrize("seed", range(3))
def test_well_mixed_holdings_cannot_be_kept_apart(seed: int) -> None:
    """1,000 subscribers hold 10 of 50: GSH brings everything to every broker, and must nearly."""
    random = Random(seed)
    holdings = [random.sample(range(50), 10) for _ in range(1000)]
    subscribers = Subscribers.of(holdings, [random.uniform(8, 12) for _ in range(50)])
    bound = lower_bound(subscribers, 5)

    assert bound.kind == "mixing"
    assert bound.distance(loads(subscribers, greedy_shuffle(subscribers, 5), 5).maximum) < 0.01


def test_holdings_that_bring_nothing_do_not_matter() -> None:
    bare = lower_bound(Subscribers.of([[0], [0], [0]], [1.0]), 2)
    more = lower_bound(Subscribers.of([[0, 1], [0], [1, 0], []], [1.0, 0.0]), 2)

    assert more.load == pytest.approx(bare.load)


def test_nothing_to_bound() -> None:
    assert lower_bound(Subscribers.of([], []), 3).load == 0.0
    assert lower_bound(Subscribers.of([[]], np.array([1.0])), 3).load == 0.0
    assert Bound(0.0, "total").distance(0.0) == 0.0
    assert Bound(200.0, "total").distance(204.0) == pytest.approx(0.02)
