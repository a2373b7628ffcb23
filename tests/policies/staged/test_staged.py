"""Which stage, and plans as wholes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.policies.staged.by_hand import random_case

from godwit.errors import UsageError
from godwit.policies.staged import (
    BalancingStage,
    BalancingThresholds,
    Plan,
    Strategy,
    Subscribers,
    loads,
    plan,
)
from godwit.policies.staged.loads import Ints
from godwit.policies.staged.planning import Shuffle


def carried_out(made: Plan, home: np.ndarray) -> np.ndarray:
    new_home = home.copy()
    for move in made.moves:
        assert new_home[move.subscriber] == move.source
        assert move.target != move.source
        new_home[move.subscriber] = move.target
    return new_home


@pytest.mark.parametrize(
    ("thresholds", "stage", "why"),
    [
        pytest.param(BalancingThresholds(0.9, gamma=1.0), BalancingStage.BALANCED, "not above alpha", id="balanced"),  # noqa: E501
        pytest.param(BalancingThresholds(0.1, 1e6), BalancingStage.BALANCED, "not above beta", id="light load"),  # noqa: E501
        pytest.param(BalancingThresholds(0.1, gamma=2.0), BalancingStage.MIGRATING, "above alpha", id="migrating"),  # noqa: E501
        pytest.param(BalancingThresholds(0.1, gamma=0.2), BalancingStage.SHUFFLE, "above gamma", id="shuffle"),  # noqa: E501
        pytest.param(
            BalancingThresholds(0.1, gamma=0.2, theta=1e6), BalancingStage.MIGRATING, "above alpha",
            id="too light a load for a shuffle",
        ),
    ],
)  # fmt: skip
def test_the_thresholds_choose_the_stage(
    thresholds: BalancingThresholds, stage: BalancingStage, why: str
) -> None:
    subscribers, home = random_case(2)

    made = plan(subscribers, home, 5, thresholds)

    assert made.stage is stage
    assert why in made.why
    assert bool(made.moves) is (stage is not BalancingStage.BALANCED)


@pytest.mark.parametrize("shuffle", Shuffle)
@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("gamma", [0.2, 5.0])
@pytest.mark.parametrize("seed", range(10))
def test_moves_lead_from_before_to_after(
    seed: int, gamma: float, strategy: Strategy, shuffle: Shuffle
) -> None:
    subscribers, home = random_case(seed)

    made = plan(subscribers, home, 5, BalancingThresholds(0.02, gamma=gamma), strategy, shuffle)

    assert made.moves
    assert len({move.subscriber for move in made.moves}) == len(made.moves)
    after = loads(subscribers, carried_out(made, home), 5)
    assert after.total.tolist() == made.after.total.tolist()
    assert made.after.maximum < made.before.maximum
    assert all(move.why for move in made.moves)


def test_who_would_move_twice_moves_once() -> None:
    """Found by looking: in this case LDM hands somebody on whom it has moved before."""
    subscribers, home = random_case(0, n=60, m=5, q=6)
    made = plan(subscribers, home, 5, BalancingThresholds(0.0, gamma=9.0))

    assert len({move.subscriber for move in made.moves}) == len(made.moves)


def test_if_nobody_can_move_nothing_is_planned() -> None:
    made = plan(
        Subscribers.of([[0]], [1.0]), np.zeros(1, np.int32), 2, BalancingThresholds(gamma=5.0)
    )

    assert (made.stage, made.moves) == (BalancingStage.BALANCED, ())
    assert "no move helps" in made.why


def test_a_shuffle_that_does_not_help_is_not_planned() -> None:
    made = plan(
        Subscribers.of([[0]], [1.0]), np.ones(1, np.int32), 2, BalancingThresholds(gamma=0.2)
    )

    assert (made.stage, made.moves) == (BalancingStage.BALANCED, ())
    assert "no shuffle helps" in made.why


def test_a_shuffler_of_the_caller() -> None:
    subscribers, home = Subscribers.of([[0], [1], [2]], [1.0] * 3), np.zeros(3, np.int32)
    asked: list[tuple[Subscribers, int]] = []

    def shuffler(given: Subscribers, m: int) -> Ints:
        asked.append((given, m))
        return np.array([0, 1, 1], dtype=np.int32)

    made = plan(subscribers, home, 2, BalancingThresholds(gamma=0.2), Strategy.LDM, shuffler)

    assert made.stage is BalancingStage.SHUFFLE
    assert carried_out(made, home).tolist() == [0, 1, 1]
    assert asked == [(subscribers, 2)]


@pytest.mark.parametrize(
    "values",
    [{"alpha": -0.1}, {"alpha": 0.5, "gamma": 0.5}, {"beta": -1.0}, {"theta": -1.0}],
    ids=str,
)
def test_thresholds_that_make_no_sense(values: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        BalancingThresholds(**values)
