"""Stage 3: the greedy shuffle."""

from __future__ import annotations

import pytest
from tests.policies.staged.by_hand import random_case, shuffle_by_hand

from godwit.errors import UsageError
from godwit.policies.staged.loads import Subscribers, loads
from godwit.policies.staged.shuffle import greedy_shuffle


@pytest.mark.parametrize("seed", range(20))
def test_it_is_that_of_the_paper(seed: int) -> None:
    subscribers, _ = random_case(seed)

    assert greedy_shuffle(subscribers, 5).tolist() == shuffle_by_hand(subscribers, 5)


@pytest.mark.parametrize(
    ("holdings", "rates", "totals"),
    [
        pytest.param([[0], [1], [2]], [3.0, 2.0, 1.0], [6.0, 6.0], id="heaviest first"),
        pytest.param([[0], [0], [0], [0]], [1.0], [3.0, 3.0], id="shared ones enter once"),
        pytest.param([[], []], [], [0.0, 0.0], id="nothing held"),
    ],
)
def test_loads_after_it(holdings: list[list[int]], rates: list[float], totals: list[float]) -> None:
    subscribers = Subscribers.of(holdings, rates)

    assert loads(subscribers, greedy_shuffle(subscribers, 2), 2).total.tolist() == totals


def test_there_must_be_a_broker() -> None:
    with pytest.raises(UsageError, match="brokers"):
        greedy_shuffle(Subscribers.of([[0]], [1.0]), 0)
