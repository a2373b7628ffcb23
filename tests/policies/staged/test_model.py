"""The load model: the paper's formulas, and increments that agree with them."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from tests.policies.staged.by_hand import loads_by_hand, random_case

from godwit.errors import UsageError
from godwit.policies.staged.loads import Loads, Subscribers, loads

SEEDS = range(20)


def test_two_subscribers_on_one_broker() -> None:
    """Test vector 13: both hold k (2), one also l (3)."""
    found = loads(Subscribers.of([[0], [0, 1]], [2.0, 3.0]), np.zeros(2, np.int32), 1)

    assert (found.incoming[0], found.outgoing[0], found.total[0]) == (5.0, 7.0, 12.0)


def test_mean_deviation_and_cov() -> None:
    found = loads(Subscribers.of([[0], [1]], [1.0, 3.0]), np.array([0, 1], np.int32), 2)

    assert found.total.tolist() == [2.0, 6.0]
    assert (found.mean, found.deviation, found.cov, found.maximum) == (4.0, 2.0, 0.5, 6.0)


def test_without_any_load_nothing_is_out_of_balance() -> None:
    assert loads(Subscribers.of([[]], []), np.zeros(1, np.int32), 3).cov == 0.0


@pytest.mark.parametrize("seed", SEEDS)
def test_loads_are_those_of_the_formula(seed: int) -> None:
    subscribers, home = random_case(seed)

    assert loads(subscribers, home, 5).total.tolist() == loads_by_hand(
        subscribers, home.tolist(), 5
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_moves_change_the_loads_as_if_counted_anew(seed: int) -> None:
    subscribers, home = random_case(seed)
    state, random = Loads(subscribers, home, 5), Random(seed)
    for _ in range(100):
        state.move(random.randrange(subscribers.n), random.randrange(5))

    assert state.total.tolist() == loads_by_hand(subscribers, state.home.tolist(), 5)
    assert (state.incoming + state.outgoing).tolist() == state.total.tolist()


@pytest.mark.parametrize("seed", SEEDS)
def test_b14_outgoing_grows_alike_and_incoming_by_what_is_not_shared(seed: int) -> None:
    subscribers, home = random_case(seed)
    i = max(range(subscribers.n), key=lambda x: subscribers.weights[x])
    before = Loads(subscribers, home, 5)
    similar, source = before.similarity(i), int(home[i])
    for target in set(range(5)) - {source}:
        after = Loads(subscribers, home, 5)
        after.move(i, target)
        out = after.outgoing[target] - before.outgoing[target]
        into = after.incoming[target] - before.incoming[target]
        assert out == subscribers.weights[i]
        assert into == subscribers.weights[i] - similar[target]
        assert before.outgoing[source] - after.outgoing[source] == subscribers.weights[i]


@pytest.mark.parametrize(
    ("starts", "held", "rates", "rule"),
    [
        pytest.param([1, 1], [0], [1.0], "first entry must be 0", id="starts late"),
        pytest.param([0, 2], [0], [1.0], "end with the length", id="ends late"),
        pytest.param([0, 2, 1, 3], [0, 1, 2], [1.0] * 3, "must not decrease", id="falls"),
        pytest.param([0, 1], [1], [1.0], "without a rate", id="no rate"),
        pytest.param([0, 1], [-1], [1.0], "without a rate", id="negative number"),
        pytest.param([0, 2], [0, 0], [1.0], "twice", id="held twice"),
        pytest.param([0, 1], [0], [-1.0], "not negative", id="negative rate"),
        pytest.param([0, 1], [0], [float("nan")], "finite", id="no number"),
    ],
)
def test_what_breaks_a_rule_is_refused(
    starts: list[int], held: list[int], rates: list[float], rule: str
) -> None:
    with pytest.raises(UsageError, match=rule):
        Subscribers(np.array(starts), np.array(held, np.int32), np.array(rates))


def test_other_rates_are_checked_too() -> None:
    subscribers = Subscribers.of([[0, 1]], [1.0, 2.0])

    assert subscribers.with_rates(np.array([5.0, 6.0])).weights.tolist() == [11.0]
    with pytest.raises(UsageError, match="rates"):
        subscribers.with_rates(np.array([1.0]))


@pytest.mark.parametrize(("home", "m"), [([0], 2), ([0, 2], 2), ([0, -1], 2), ([0, 0], 0)])
def test_an_assignment_to_brokers_that_are_not_there_is_refused(home: list[int], m: int) -> None:
    with pytest.raises(UsageError):
        loads(Subscribers.of([[0], [0]], [1.0]), np.array(home, np.int32), m)


def test_other_rates_change_what_follows_from_them_and_nothing_else() -> None:
    subscribers = Subscribers.of([[0], [1]], [1.0, 2.0])
    assert subscribers.heaviest_first.tolist() == [1, 0]

    other = subscribers.with_rates(np.array([4.0, 3.0]))

    assert (other.weights.tolist(), other.heaviest_first.tolist()) == ([4.0, 3.0], [0, 1])
    assert (subscribers.weights.tolist(), subscribers.rates.tolist()) == ([1.0, 2.0], [1.0, 2.0])
