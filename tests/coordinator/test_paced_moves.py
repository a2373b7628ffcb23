"""Clients are moved at a limited rate, asked again, and given up: paced_moves.py."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from random import Random

import pytest

from godwit.api.broker_api import MoveOutcome
from godwit.coordinator.paced_moves import (
    BURST_S,
    NO_ROOM,
    RETRY_S,
    SILENCES,
    TRIES,
    MoveBatch,
    PacedMoves,
)


def to_b2(_client: str, _avoided: AbstractSet[str]) -> str:
    return "B2"


def answer(batch: MoveBatch, **stayed: str) -> MoveOutcome:
    moved = [name for name in batch.clients if name not in stayed]
    return MoveOutcome(moved=moved, stayed=stayed, unknown=[])


def names(batches: list[MoveBatch]) -> list[str]:
    return sorted(name for batch in batches for name in batch.clients)


@pytest.mark.parametrize("seed", range(20))
def test_no_more_are_asked_than_the_pace_allows(seed: int) -> None:
    random = Random(seed)
    per_s = random.choice([0.5, 3.0, 40.0])
    moves = PacedMoves(per_s, to_b2, now_s=0.0)
    moves.see("B1", [f"c{n}" for n in range(500)])
    asked: list[float] = []
    now_s = 0.0
    for _ in range(200):
        now_s += random.choice([0.01, 0.1, 0.1, 0.7])
        for batch in moves.hand_out(now_s):
            asked += [now_s] * len(batch.clients)
            moves.carried_out(batch, answer(batch), now_s)
    for first, start_s in enumerate(asked):  # P1, over every stretch of time
        for last in range(first, len(asked)):
            t = asked[last] - start_s
            assert last - first + 1 <= (t + BURST_S) * per_s + 1, f"seed {seed}"
    assert len(asked) >= min(500, int((now_s - 1) * per_s * 0.5)), "it is not slower for no reason"


def test_a_client_that_stays_is_asked_again_elsewhere_and_then_given_up() -> None:
    chosen: list[tuple[str, frozenset[str]]] = []

    def choose(client: str, avoided: AbstractSet[str]) -> str:
        chosen.append((client, frozenset(avoided)))
        return next(b for b in ("B2", "B3", "B4", "B5") if b not in avoided)

    moves = PacedMoves(100.0, choose, now_s=0.0)
    moves.see("B1", ["ann"])
    now_s = 0.0
    for _ in range(TRIES):
        (batch,) = moves.hand_out(now_s)
        assert moves.hand_out(now_s) == [], "not while it is asked"
        moves.see("B1", ["ann"])
        assert moves.hand_out(now_s) == [], "nor if it is seen again"
        moves.carried_out(batch, answer(batch, ann="no wish"), now_s)
        assert moves.hand_out(now_s + RETRY_S / 2) == [], "nor at once"
        now_s += RETRY_S
    moves.see("B1", ["ann"])
    assert moves.hand_out(now_s + 100) == []
    assert moves.is_idle
    assert moves.stayed == {"ann": "no wish"}
    avoided = [frozenset(), frozenset({"B2"}), frozenset({"B2", "B3"})]
    assert chosen == [("ann", each) for each in avoided], "P3"


def test_a_broker_that_does_not_answer_costs_no_tries() -> None:
    moves = PacedMoves(100.0, to_b2, now_s=0.0)
    moves.see("B1", ["ann"])
    now_s = 0.0
    for _ in range(SILENCES):
        (batch,) = moves.hand_out(now_s)
        moves.carried_out(batch, "no answer in time", now_s)
        assert moves.stayed == {"ann": "no answer in time"}
        now_s += RETRY_S
    assert moves.is_idle, "but there is an end"


def test_what_came_of_it() -> None:
    moves = PacedMoves(100.0, to_b2, now_s=0.0)
    moves.see("B1", ["ann", "bob", "cid"])
    now_s = 1.0
    (batch,) = moves.hand_out(now_s)
    assert batch == MoveBatch("B1", "B2", ("ann", "bob", "cid"))
    moves.carried_out(batch, MoveOutcome(["ann"], {"bob": "why not"}, ["cid"]), now_s)
    assert moves.moved == {"ann": "B2"}
    assert moves.stayed == {"bob": "why not"}
    moves.see("B1", ["cid"])  # It is back; bob has gone.
    assert moves.stayed == {}
    assert names(moves.hand_out(now_s + 1)) == ["cid"]


def test_without_room_a_client_stays() -> None:
    moves = PacedMoves(100.0, lambda _client, _avoided: None, now_s=0.0)
    moves.see("B1", ["ann"])
    for number in range(SILENCES):
        assert not moves.is_idle
        assert moves.hand_out(number * RETRY_S) == []
        assert moves.stayed == {"ann": NO_ROOM}
    assert moves.is_idle
