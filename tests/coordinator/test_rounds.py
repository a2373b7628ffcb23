"""Plans and moves, as time-lines: nobody moves too often, to nowhere, or on old loads."""

from __future__ import annotations

import msgspec
import pytest
from tests.coordinator.scenes import (
    QUICK,
    Homes,
    all_moved,
    asked,
    broker_at,
    coordinator,
    look,
    outcomes,
    report,
    reported,
)

from godwit.api.broker_api import MoveOutcome
from godwit.api.coordinator_api import MoveRecord, Outcome, RejectedMove, WhichMoves
from godwit.coordinator.coordinator_core import Coordinator
from godwit.coordinator.rounds import MOVES_KEPT, Batch
from godwit.coordinator.settings import CoordinatorSettings
from godwit.errors import UsageError

SIX = [f"s{number}" for number in range(6)]
CROWDED: Homes = {"B1": SIX, "B2": [], "B3": []}


def planned(
    settings: CoordinatorSettings = QUICK, homes: Homes = CROWDED
) -> tuple[Coordinator, list[Batch]]:
    """Time 1: everybody has reported; time 3: the first moves are asked for."""
    core = coordinator(settings=settings)
    reported(core, 1.0, homes)
    assert look(core, 2.0)
    core.hand_out(2.0)
    return core, core.hand_out(3.0)


def test_a_crowd_is_spread() -> None:
    core, batches = planned()
    moves = asked(batches)
    assert {source for source, _ in moves.values()} == {"B1"}
    assert len(batches) == 1, "a broker has one batch at a time"
    core.carried_out(batches[0], all_moved(batches[0]), 4.0)
    (second,) = core.hand_out(4.0)
    assert {batches[0].target, second.target} == {"B2", "B3"}
    core.carried_out(second, all_moved(second), 5.0)
    assert sorted(outcomes(core).values()) == ["moved"] * 4
    plan = core.plan().plan
    assert plan is not None
    assert (plan.ended_s, plan.stage, plan.cov_after) == (5.0, "migrating", 0.0)
    assert plan.load_before == {"B1": 1200.0, "B2": 0.0, "B3": 0.0}
    assert plan.load_after == {"B1": 400.0, "B2": 400.0, "B3": 400.0}
    assert all("its broker is the most loaded" in move.why for move in core.plan().moves)


def test_a_look_needs_a_report_of_every_live_broker() -> None:
    core = coordinator()
    reported(core, 1.0, {"B1": SIX, "B2": []})
    assert not look(core, 2.0)
    assert core.plan().waits_for == ["B3"]
    core.report(report("B3"), 3.0)
    assert look(core, 4.0)


def test_who_is_silent_is_not_waited_for() -> None:
    core = coordinator()
    reported(core, 20.0, {"B1": SIX, "B2": []})
    assert not look(core, 29.0)
    assert look(core, 30.0)
    assert {
        target for _, target in asked([*core.hand_out(30.0), *core.hand_out(31.0)]).values()
    } == {"B2"}


def test_one_broker_has_nobody_to_share_with() -> None:
    core = coordinator(1)
    core.report(report("B1", SIX), 1.0)
    assert not look(core, 2.0)
    assert core.plan().says == "balancing needs two live brokers; there are 1"
    core.register_broker(broker_at(2), 3.0)
    core.report(report("B2"), 3.0)
    assert look(core, 4.0), "nothing has come of the first report yet"


def test_a_look_needs_reports_that_are_newer_than_the_last() -> None:
    balanced = {"B1": ["s1"], "B2": ["s2"], "B3": ["s3"]}
    core = coordinator()
    reported(core, 1.0, balanced)
    assert look(core, 2.0)
    assert not look(core, 3.0)
    reported(core, 11.0, balanced)
    assert look(core, 12.0)


def test_reports_from_before_the_moves_do_not_count() -> None:
    core, (first,) = planned()
    reported(core, 3.5, CROWDED)
    assert not look(core, 3.6), "a plan is under way"
    core.carried_out(first, all_moved(first), 4.0)
    (second,) = core.hand_out(4.0)
    core.carried_out(second, all_moved(second), 5.0)
    assert not look(core, 5.5), "nobody has reported since"
    reported(core, 5.9, CROWDED)
    assert not look(core, 6.0), "what was sent just then may not know"
    reported(core, 6.1, {"B1": SIX[:2], "B2": SIX[2:4], "B3": SIX[4:]})
    assert look(core, 6.2)
    assert not core.rounds.is_under_way


def test_who_was_asked_is_held() -> None:
    core, (first,) = planned()
    core.carried_out(first, all_moved(first), 4.0)
    (second,) = core.hand_out(4.0)
    core.carried_out(second, all_moved(second), 5.0)
    gone = set(first.clients) | set(second.clients)
    # Everybody flocks to B2: those who were moved are left alone, the others may go.
    for now_s in (10.0, 20.0, 30.0):
        reported(core, now_s, {"B1": [], "B2": SIX, "B3": []})
        look(core, now_s + 1)
        moves = asked(core.hand_out(now_s + 1))
        assert not set(moves) & gone
        for batch in [each for each, _ in core.rounds._asked.values()]:
            core.carried_out(batch, all_moved(batch), now_s + 2)
    reported(core, 70.0, {"B1": [], "B2": SIX, "B3": []})
    look(core, 71.0)
    assert set(asked(core.hand_out(71.0))) & gone


def test_a_plan_whose_people_are_held_is_no_plan() -> None:
    core = coordinator(2)
    reported(core, 1.0, {"B1": ["s1", "s2"], "B2": []})
    look(core, 2.0)
    core.hand_out(2.0)
    (batch,) = core.hand_out(3.0)
    (mover,) = batch.clients
    core.carried_out(batch, MoveOutcome(moved=[], stayed={mover: "no wish"}, unknown=[]), 4.0)
    core.report(report("B1", [mover]), 6.0)
    reported(core, 6.0, {"B2": []})
    other = ({"s1", "s2"} - {mover}).pop()
    core.report(
        msgspec.structs.replace(
            report("B1", [mover, other]), rates={int(mover[1:]): 300.0, int(other[1:]): 0.0}
        ),
        6.1,
    )
    assert look(core, 7.0)
    assert core.hand_out(7.0) == []


@pytest.mark.parametrize(
    ("came_of_it", "expected", "because"),
    [
        pytest.param({"stayed": {"s": "no wish"}}, "stayed", "no wish", id="it stays"),
        pytest.param(
            {"unknown": ["s"]}, "dropped", "the broker does not have it", id="it was not there"
        ),
        pytest.param({"moved": ["s"]}, "moved", "", id="it moves"),
        pytest.param("nobody answers", "unknown", "nobody answers", id="nobody knows"),
    ],
)
def test_what_came_of_it_is_recorded(
    came_of_it: dict[str, object] | str, expected: str, because: str
) -> None:
    core = coordinator(2)
    reported(core, 1.0, {"B1": ["s1", "s2"], "B2": []})
    look(core, 2.0)
    core.hand_out(2.0)
    (batch,) = core.hand_out(3.0)
    (mover,) = batch.clients
    outcome: MoveOutcome | str = "nobody answers"
    if not isinstance(came_of_it, str):
        text = msgspec.json.encode({"moved": [], "stayed": {}, "unknown": [], **came_of_it})
        outcome = msgspec.json.decode(text.replace(b'"s"', f'"{mover}"'.encode()), type=MoveOutcome)
    core.carried_out(batch, outcome, 4.0)
    (move,) = core.moves(WhichMoves(client=mover)).moves
    assert (move.outcome.value, move.because, move.asked_s, move.ended_s) == (
        expected, because, 3.0, 4.0,
    )  # fmt: skip
    assert core.plan().outcomes == {expected: 1}
    assert core.rounds.outcomes[Outcome(expected)] == 1
    assert not core.rounds.is_under_way


def test_a_broker_that_never_answers_is_not_waited_for_for_ever() -> None:
    core, (first,) = planned()
    deadline_s = 3.0 + first.answer_s + 5.0
    assert core.hand_out(deadline_s - 0.1) == []
    reported(core, deadline_s - 0.1, CROWDED)
    core.hand_out(deadline_s)
    assert {outcomes(core)[client] for client in first.clients} == {"unknown"}
    core.carried_out(first, all_moved(first), deadline_s + 1)
    assert {outcomes(core)[client] for client in first.clients} == {"unknown"}, "too late"


def test_an_old_plan_is_given_up() -> None:
    slow = msgspec.structs.replace(QUICK, moves_per_s=0.01, plan_s=50.0)
    core, _ = planned(slow)
    for now_s in (10.0, 30.0, 51.0):
        reported(core, now_s, CROWDED)
        core.hand_out(now_s)
    assert core.rounds.is_under_way
    core.hand_out(52.0)
    assert not core.rounds.is_under_way
    assert {move.because for move in core.plan().moves} == {"the plan is too old"}


def test_nobody_is_sent_to_a_broker_that_has_gone_silent() -> None:
    core = coordinator()
    reported(core, 1.0, CROWDED)
    look(core, 2.0)
    reported(core, 25.0, {"B1": SIX, "B2": []})
    core.hand_out(30.0)
    (batch,) = core.hand_out(31.0)
    assert batch.target == "B2"
    core.carried_out(batch, all_moved(batch), 32.0)
    assert core.hand_out(32.0) == []
    because = {move.target: move.because for move in core.plan().moves}
    assert because == {"B2": "", "B3": "broker B3 is silent"}


def test_who_has_left_is_not_asked() -> None:
    core = coordinator()
    reported(core, 1.0, CROWDED)
    look(core, 2.0)
    reported(core, 2.5, {"B1": [], "B2": SIX})
    core.hand_out(3.0)
    assert core.hand_out(4.0) == []
    assert {move.because for move in core.plan().moves} == {"it has left B1"}
    assert core.rounds.held(4.0) == frozenset(), "nobody has bothered them"


def test_a_broker_without_an_address_for_requests_keeps_its_subscribers() -> None:
    core = coordinator()
    core.register_broker(broker_at(1, http=None), 0.5)
    reported(core, 1.0, CROWDED)
    look(core, 2.0)
    core.hand_out(2.0)
    assert core.hand_out(3.0) == []
    assert {move.because for move in core.plan().moves} == {"broker B1 has no HTTP address"}


def test_moves_are_handed_out_at_the_rate_that_is_set() -> None:
    core = coordinator(settings=msgspec.structs.replace(QUICK, moves_per_s=2.0))
    reported(core, 1.0, {"B1": [f"s{n}" for n in range(30)], "B2": [], "B3": []})
    look(core, 2.0)
    assert core.hand_out(2.0) == []
    sizes = []
    for step in range(1, 8):
        now_s = 2.0 + step / 2
        batches = core.hand_out(now_s)
        sizes.append(sum(len(batch.clients) for batch in batches))
        for batch in batches:
            core.carried_out(batch, all_moved(batch), now_s)
    assert sizes == [1] * 7


def test_pairs_of_brokers_take_turns() -> None:
    core = coordinator(settings=msgspec.structs.replace(QUICK, moves_per_s=1.0))
    reported(core, 1.0, {"B1": [f"s{n}" for n in range(12)], "B2": [], "B3": []})
    look(core, 2.0)
    core.hand_out(2.0)
    targets = []
    for now_s in range(3, 9):
        (batch,) = core.hand_out(float(now_s))
        targets.append(batch.target)
        core.carried_out(batch, all_moved(batch), float(now_s))
    assert targets == ["B2", "B3"] * 3


def test_what_was_not_used_does_not_pile_up() -> None:
    core = coordinator(settings=msgspec.structs.replace(QUICK, moves_per_s=2.0))
    core.hand_out(0.0)
    core.hand_out(1000.0)
    reported(core, 1000.0, {"B1": [f"s{n}" for n in range(30)], "B2": [], "B3": []})
    look(core, 1001.0)
    assert sum(len(batch.clients) for batch in core.hand_out(1001.0)) == 2


def test_a_dry_run_moves_nobody_and_shows_the_last_plan() -> None:
    core = coordinator(settings=msgspec.structs.replace(QUICK, dry_run=True))
    for now_s in (1.0, 11.0, 21.0):
        reported(core, now_s, CROWDED)
        assert look(core, now_s + 1)
        assert core.hand_out(now_s + 2) == []
    shown = core.plan()
    assert shown.plan is not None
    assert (shown.plan.number, shown.plan.is_dry_run, shown.plan.ended_s) == (3, True, 22.0)
    assert shown.outcomes == {"proposed": 4}
    assert len(core.memory.moves) == 4, "the others were much the same"
    assert core.rounds.held(24.0) == frozenset()


def test_a_proposal_that_is_rejected_is_not_made_again_for_a_while() -> None:
    core = coordinator(settings=msgspec.structs.replace(QUICK, dry_run=True))
    reported(core, 1.0, CROWDED)
    assert look(core, 2.0)
    first = core.plan().moves[0]
    for _ in range(2):  # It may be asked again.
        rejected = core.reject(RejectedMove(first.number), 3.0)
    assert (rejected.outcome, rejected.because) == (Outcome.REJECTED, "rejected by an operator")
    assert core.plan().outcomes == {"proposed": 3, "rejected": 1}
    assert core.rounds.held(4.0) == {first.client}
    again = coordinator(0, memory=core.memory, now_s=5.0)
    assert again.rounds.held(6.0) == {first.client}, "also after a restart"
    reported(core, 11.0, CROWDED)
    assert look(core, 12.0)
    proposed = [move.client for move in core.plan().moves if move.outcome is Outcome.PROPOSED]
    assert proposed
    assert first.client not in proposed
    with pytest.raises(UsageError, match="is not proposed now"):
        core.reject(RejectedMove(999), 13.0)


def test_a_plan_that_was_under_way_is_given_up_after_a_restart() -> None:
    core, (first,) = planned()
    again = coordinator(0, memory=core.memory, now_s=5.0)
    assert not again.rounds.is_under_way
    found = outcomes(again)
    assert {found.pop(client) for client in first.clients} == {"unknown"}
    assert set(found.values()) == {"dropped"}
    assert again.rounds.held(62.0) == set(first.clients), "R1, across restarts"
    assert again.rounds.held(63.0) == frozenset()
    plan = again.plan().plan
    assert plan is not None
    assert plan.ended_s == 5.0
    reported(again, 6.0, CROWDED)
    assert look(again, 7.0)
    assert not set(asked([*again.hand_out(7.0), *again.hand_out(8.0)])) & set(first.clients)


def test_old_moves_are_forgotten_but_not_those_that_hold_somebody() -> None:
    core, batches = planned()
    for number in range(100, 100 + MOVES_KEPT):
        core._keep(
            MoveRecord(
                number=number, plan=0, client=f"old{number}", source="B1", target="B2", why="",
                outcome=Outcome.MOVED,
            )
        )  # fmt: skip
    while batches:
        core.carried_out(batches[0], all_moved(batches[0]), 4.0)
        batches = core.hand_out(4.0)
    held = core.rounds.held(5.0)
    assert len(held) == 4
    assert len(core.memory.moves) == MOVES_KEPT + 4
    assert set(outcomes(core)) >= held
    # Later on they are like all others.
    reported(core, 100.0, CROWDED)
    look(core, 101.0)
    batches = core.hand_out(102.0)
    while batches:
        core.carried_out(batches[0], all_moved(batches[0]), 103.0)
        batches = core.hand_out(103.0)
    assert len(core.memory.moves) == MOVES_KEPT
    assert min(core.memory.moves) > 4
