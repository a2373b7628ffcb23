"""What the coordinator remembers is on the disk, all of a change or nothing."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.coordinator.scenes import QUICK, all_moved, coordinator, look, reported

from godwit.api.coordinator_api import MoveRecord, Outcome, RegisterUser, RequestBroker
from godwit.content.geography import GeoPoint
from godwit.coordinator.broker_records import BrokerRecord, Forgotten, Memory, UserRecord
from godwit.coordinator.state import FILE_NAME, State
from godwit.errors import UsageError


def test_everything_comes_back(tmp_path: Path) -> None:
    state = State(tmp_path)
    core = coordinator(memory=state.load())
    core.register_user(RegisterUser("ü", GeoPoint(60.0, 25.0)))
    core.request_broker(RequestBroker("ü"), 1.0)
    reported(core, 1.0, {"B1": ["s1", "s2", "s3", "s4"], "B2": [], "B3": []})
    look(core, 2.0)
    core.hand_out(2.0)
    (batch,) = core.hand_out(3.0)
    core.carried_out(batch, all_moved(batch), 4.0)
    state.save(core.take_changes())
    state.close()

    again = State(tmp_path)
    memory = again.load()
    again.close()
    assert memory == core.memory
    assert memory.moves
    assert memory.plan is not None
    assert coordinator(0, QUICK, memory).rounds.held(5.0) == set(batch.clients)


def test_what_is_forgotten_is_gone(tmp_path: Path) -> None:
    move = MoveRecord(
        number=7, plan=1, client="c", source="B1", target="B2", why="", outcome=Outcome.MOVED
    )
    state = State(tmp_path)
    state.save([move])
    assert state.load().moves == {7: move}
    state.save([Forgotten(7)])
    assert state.load() == Memory()
    state.close()


def test_all_or_nothing(tmp_path: Path) -> None:
    broker = BrokerRecord("B1", "godwit://a:1", None, None)
    state = State(tmp_path)
    state.save([broker])
    with pytest.raises(TypeError):
        state.save([UserRecord("u", None), UserRecord("v", object())])  # type: ignore[arg-type]
    assert state.load().users == {}
    state.save([UserRecord("u", None)])
    assert list(state.load().users) == ["u"]
    state.close()


def test_a_folder_belongs_to_one_process(tmp_path: Path) -> None:
    state = State(tmp_path)
    with pytest.raises(UsageError, match=r"cannot use the state folder .*: database is locked"):
        State(tmp_path)
    state.close()
    State(tmp_path).close()


@pytest.mark.parametrize("kind", ["a file in the way", "garbage"])
def test_a_folder_that_cannot_be_used(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "state"
    if kind == "garbage":
        folder.mkdir()
        (folder / FILE_NAME).write_bytes(b"this is no database" * 100)
    else:
        folder.write_text("")
    with pytest.raises(UsageError, match="cannot use the state folder"):
        State(folder)


def test_a_disk_that_does_not_take_it_is_an_error_of_sqlite(tmp_path: Path) -> None:
    state = State(tmp_path)
    state._connection.execute("PRAGMA max_page_count = 4")
    many = [UserRecord(f"user{n}" * 20, None) for n in range(1000)]
    with pytest.raises(sqlite3.OperationalError, match="full"):
        state.save(many)
    state._connection.execute("PRAGMA max_page_count = 100000")
    state.save(many)
    assert len(state.load().users) == 1000
    state.close()
