"""Changes as records: one at a time, durable, taken back: changes.py."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from godwit.api.network_api import (
    Authority,
    ChangeKind,
    ChangeRequest,
    ChangeState,
    StepState,
)
from godwit.coordinator.broker_records import AuthorityRecord, Change, Memory
from godwit.coordinator.changes import CHANGES_KEPT, NetworkChanges, steps_of
from godwit.coordinator.state import State
from godwit.http.errors import RestError

ME = Authority(1, "me")


class Book:
    """Changes, and what was kept of them."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.kept: list[Change] = []
        self.changes = NetworkChanges(self.memory, self.keep)

    def keep(self, change: Change) -> None:
        self.memory.apply(change)
        self.kept.append(change)

    def begin(self, kind: ChangeKind, *brokers: str) -> int:
        request = ChangeRequest(kind=kind, brokers=list(brokers))
        return self.changes.begin(request, ME, 1.0, before={}, expected={}).number

    def carry_out(self, kind: ChangeKind, *brokers: str, end: ChangeState) -> None:
        self.begin(kind, *brokers)
        self.changes.end(end, "", {}, 2.0)


@pytest.mark.parametrize(
    ("kind", "fields", "steps"),
    [
        (ChangeKind.DRAIN, {}, "drain B1"),
        (ChangeKind.UNDRAIN, {}, "undrain B1"),
        (ChangeKind.JOIN, {}, "join B1"),
        (ChangeKind.LEAVE, {}, "drain B1, leave B1"),
        (ChangeKind.RESTART, {}, "drain B1, restart B1, return B1"),
        (ChangeKind.RESTART, {"returns": False}, "drain B1, restart B1"),
        (ChangeKind.RESTART, {"drains": False}, "restart B1"),
    ],
)
def test_the_steps_of_each_kind(kind: ChangeKind, fields: dict[str, bool], steps: str) -> None:
    request = msgspec.structs.replace(ChangeRequest(kind=kind, brokers=["B1"]), **fields)
    assert ", ".join(f"{step.kind.value} {step.broker}" for step in steps_of(request)) == steps


def test_a_rolling_restart_finishes_each_broker_before_the_next() -> None:
    request = ChangeRequest(kind=ChangeKind.RESTART, brokers=["B1", "B2"])
    assert [step.broker for step in steps_of(request)] == ["B1"] * 3 + ["B2"] * 3


def test_one_at_a_time() -> None:
    book = Book()
    book.begin(ChangeKind.DRAIN, "B1")
    with pytest.raises(RestError, match=r"change 1 \(drain B1\) is running"):
        book.begin(ChangeKind.DRAIN, "B2")
    book.changes.end(ChangeState.DONE, "", {}, 3.0)
    assert book.begin(ChangeKind.DRAIN, "B2") == 2


def test_a_change_goes_on_where_its_record_says(tmp_path: Path) -> None:
    book = Book()
    book.begin(ChangeKind.LEAVE, "B1")
    book.changes.begin_step(0, 2.0)
    book.changes.note(0, moved=3, went={"ann": "B2"})
    book.changes.end_step(0, StepState.DONE, "3 clients moved", 3.0)
    book.changes.begin_step(1, 4.0)
    book.changes.note(1, start="run-7")
    state = State(tmp_path)
    state.save([*book.kept, AuthorityRecord(ME)])
    state.close()
    state = State(tmp_path)
    memory = state.load()
    state.close()
    after = NetworkChanges(memory, lambda _change: None).current
    assert after == book.changes.current
    assert after is not None
    assert [step.state for step in after.steps] == [StepState.DONE, StepState.RUNNING]
    assert after.steps[1].start == "run-7"
    assert memory.authority == ME


def test_an_abort_is_a_state_and_comes_too_late_for_a_broker_that_leaves() -> None:
    book = Book()
    with pytest.raises(RestError, match="no change is under way"):
        book.changes.abort()
    book.begin(ChangeKind.LEAVE, "B1")
    assert book.changes.abortable().state is ChangeState.RUNNING, "a dry run changes nothing"
    assert book.changes.abort().state is ChangeState.TAKING_BACK
    assert book.changes.is_taken_back
    assert book.changes.abort().state is ChangeState.TAKING_BACK, "it may be repeated"
    book.changes.end(ChangeState.TAKEN_BACK, "aborted", {}, 3.0)
    book.begin(ChangeKind.LEAVE, "B1")
    book.changes.begin_step(1, 4.0)
    with pytest.raises(RestError, match="too late"):
        book.changes.abort()


@pytest.mark.parametrize(
    ("history", "drained"),
    [
        pytest.param(
            [(ChangeKind.DRAIN, ChangeState.DONE), (ChangeKind.RESHAPE, ChangeState.DONE)],
            True,
            id="another shape does not let it serve clients again",
        ),
        pytest.param([(ChangeKind.DRAIN, ChangeState.DONE)], True, id="drained"),
        pytest.param([(ChangeKind.DRAIN, ChangeState.INCOMPLETE)], True, id="not everybody went"),
        pytest.param([(ChangeKind.LEAVE, ChangeState.INCOMPLETE)], True, id="it could not leave"),
        pytest.param([(ChangeKind.DRAIN, ChangeState.TAKEN_BACK)], False, id="taken back"),
        pytest.param([(ChangeKind.DRAIN, ChangeState.FAILED)], False, id="failed"),
        pytest.param(
            [(ChangeKind.DRAIN, ChangeState.DONE), (ChangeKind.UNDRAIN, ChangeState.DONE)],
            False,
            id="undrained",
        ),
        pytest.param(
            [(ChangeKind.DRAIN, ChangeState.DONE), (ChangeKind.LEAVE, ChangeState.DONE)],
            False,
            id="gone",
        ),
        pytest.param(
            [(ChangeKind.DRAIN, ChangeState.DONE), (ChangeKind.RESTART, ChangeState.DONE)],
            False,
            id="restarted on purpose",
        ),
    ],
)
def test_which_brokers_stay_drained(
    history: list[tuple[ChangeKind, ChangeState]], drained: bool
) -> None:
    book = Book()
    for kind, end in history:
        book.carry_out(kind, "B1", end=end)
    assert ("B1" in book.changes.drained) is drained


def test_a_broker_that_joins_waits_for_clients() -> None:
    book = Book()
    book.begin(ChangeKind.JOIN, "B4")
    assert book.changes.joining == {"B4"}
    book.changes.end(ChangeState.DONE, "", {}, 3.0)
    assert book.changes.joining == frozenset()


def test_the_oldest_changes_are_forgotten() -> None:
    book = Book()
    for _ in range(CHANGES_KEPT + 5):
        book.carry_out(ChangeKind.UNDRAIN, "B1", end=ChangeState.DONE)
    assert len(book.memory.changes) == CHANGES_KEPT
    assert [change.number for change in book.changes.latest(2)] == [CHANGES_KEPT + 5, 1004]
    with pytest.raises(RestError, match="there is no change 1"):
        book.changes.change(1)
