"""What POP and GRAPE share: hold times, dry runs, publishers that do not move; and their names."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from tests.policies.placement.by_hand import Tree

from godwit.broker.effects import Decision
from godwit.broker.modules import PolicyModule
from godwit.errors import UsageError
from godwit.overlay.topology import chain
from godwit.policies import placement
from godwit.policies.placement.grape import Grape
from godwit.policies.placement.pop import Pop
from godwit.policies.placement.settings import GrapeSettings, PopSettings

Make = Callable[..., PolicyModule]


def pop(**settings: object) -> Pop:
    every = PopSettings(traces_per_decision=4, traces_per_window=10**9, **settings)  # type: ignore[arg-type]
    return Pop(Random(1), every)


def grape(**settings: object) -> Grape:
    return Grape(GrapeSettings(publications_per_session=4, **settings))  # type: ignore[arg-type]


both = pytest.mark.parametrize("make", [pop, grape])


def scene(make: Make, **settings: object) -> Tree:
    shape = chain(3)
    return Tree(shape, {name: make(**settings) for name in shape.brokers}, "B1")


def publish(tree: Tree, wanted: dict[str, int], times: int = 4) -> None:
    for _ in range(times):
        tree.publish(wanted)


@both
def test_after_a_move_nothing_is_decided_or_traced_for_the_hold_time(make: Make) -> None:
    tree = scene(make, hold_s=50.0)
    publish(tree, {"B3": 1})
    tree.move("B3")
    assert [tree.trace({"B1": 1}) for _ in range(10)] == [0] * 10
    tree.wait(49.0)
    assert tree.trace({"B1": 1}) == 0
    tree.wait(1.0)
    publish(tree, {"B1": 1})
    assert [move.target for move in tree.moves] == ["B3", "B1"]


@both
@pytest.mark.parametrize(("hold_s", "moves"), [(0.0, 20), (60.0, 4)])
def test_the_hold_time_tames_ping_pong(make: Make, hold_s: float, moves: int) -> None:
    """The subscribers are always at the other end, within ten seconds of each move."""
    tree = scene(make, hold_s=hold_s)
    for _ in range(20):
        other = "B3" if tree.at == "B1" else "B1"
        before = len(tree.moves)
        publish(tree, {other: 1})
        if len(tree.moves) > before:
            tree.move(tree.moves[-1].target)
        tree.wait(10.0)
    assert len(tree.moves) == moves


@both
def test_a_dry_run_proposes_and_moves_nobody(make: Make) -> None:
    tree = scene(make, dry_run=True)
    publish(tree, {"B3": 1}, times=8)
    assert tree.actions == ["proposed", "proposed"]
    assert {decision.target for decision in tree.decisions} == {"B3"}
    assert not tree.moves


@both
def test_a_publisher_that_does_not_move_is_left_alone_for_a_while(make: Make) -> None:
    tree = scene(make, move_timeout_s=60.0, hold_s=100.0)
    publish(tree, {"B3": 1}, times=8)
    assert tree.actions == ["asked"], "while it is moving nothing is decided"
    tree.wait(75.0)
    assert tree.actions == ["asked", "gave up"]
    assert tree.decisions[-1].target == "B3"
    publish(tree, {"B3": 1}, times=8)
    assert len(tree.actions) == 2
    tree.wait(100.0)
    publish(tree, {"B3": 1})
    assert tree.actions == ["asked", "gave up", "asked"]


@both
def test_that_a_publisher_has_left_is_reported_if_it_was_asked_to(make: Make) -> None:
    tree = scene(make, move_timeout_s=60.0)
    module = tree.modules["B1"]
    publish(tree, {"B3": 1}, times=3)
    assert list(module.on_departed("publisher", tree.now_s)) == []
    publish(tree, {"B3": 1}, times=4)
    (asked,) = tree.decisions
    (left,) = module.on_departed("publisher", tree.now_s + 2.0)
    assert left == Decision("left", "publisher", "B1", asked.target, {"took_s": 2.0})
    assert list(module.on_departed("publisher", tree.now_s)) == []


@both
def test_a_publisher_that_came_back_is_traced_from_nothing(make: Make) -> None:
    tree = scene(make, hold_s=0.0)
    publish(tree, {"B3": 1}, times=3)
    tree.move("B2")
    tree.move("B1")
    publish(tree, {"B1": 1}, times=3)
    assert not tree.decisions
    publish(tree, {"B1": 1}, times=1)
    assert tree.actions == ["stayed"]


@both
def test_there_is_one_timer_at_a_time(make: Make) -> None:
    tree = scene(make)
    publish(tree, {"B3": 1}, times=3)
    assert sorted(broker for broker, _ in tree.timers) == sorted({b for b, _ in tree.timers})


def test_policies_by_name() -> None:
    assert list(placement.modules("static")("B1")) == []
    assert isinstance(placement.modules("pop")("B1")[0], Pop)
    assert isinstance(placement.modules("grape-load")("B1")[0], Grape)
    assert isinstance(placement.modules(GrapeSettings())("B1")[0], Grape)
    with pytest.raises(UsageError, match="no policy 'best'; choose from"):
        placement.modules("best")


def test_brokers_draw_differently_and_the_same_again() -> None:
    def draws(broker: str, seed: int) -> list[float]:
        (module,) = placement.modules("pop", seed=seed)(broker)
        assert isinstance(module, Pop)
        return [module._random.random() for _ in range(3)]

    assert draws("B1", 1) == draws("B1", 1)
    assert draws("B1", 1) != draws("B2", 1)
    assert draws("B1", 1) != draws("B1", 2)


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (PopSettings, {"traces_per_decision": 0}),
        (PopSettings, {"newest_weight": 0.0}),
        (PopSettings, {"hold_s": -1.0}),
        (GrapeSettings, {"publications_per_session": 0}),
        (GrapeSettings, {"publications_per_session": 100_000}),
        (GrapeSettings, {"weight_percent": 101.0}),
        (GrapeSettings, {"answer_timeout_s": 0.0}),
    ],
)
def test_settings_that_make_no_sense(make: Callable[..., object], wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        make(**wrong)
