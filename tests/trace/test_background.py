"""The thread that writes: in order, with few waiting; what goes wrong there is heard of here."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.trace.test_writer import decision

from godwit.trace import rows as in_rows
from godwit.trace.background import ENOUGH, Background
from godwit.trace.writer import TraceWriter


def test_all_is_done_in_order_elsewhere() -> None:
    background, done = Background(), []
    for number in range(20):
        background.run(lambda n=number: done.append((n, threading.current_thread().name)))  # type: ignore[misc]
    background.finish()
    assert done == [(number, "trace") for number in range(20)]
    assert all(thread.name != "trace" for thread in threading.enumerate())


def test_whoever_asks_for_too_much_has_to_wait() -> None:
    background, may_go_on = Background(), threading.Event()
    for _ in range(2 + ENOUGH):
        background.run(may_go_on.wait)  # type: ignore[arg-type]
    asking = threading.Thread(target=background.run, args=(may_go_on.wait,))
    asking.start()
    asking.join(timeout=0.2)
    assert asking.is_alive()
    assert background.is_busy
    may_go_on.set()
    asking.join()
    background.finish()


def test_what_went_wrong_is_raised_once_and_the_rest_is_done() -> None:
    background, done = Background(), []

    def fail() -> None:
        raise OSError("the disk is full")

    background.run(fail)
    background.run(lambda: done.append("after it"))
    with pytest.raises(OSError, match="the disk is full"):
        background.finish()
    assert done == ["after it"]
    background._raise()


def test_a_trace_that_cannot_be_written_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_rows, "ROWS_PER_GROUP", 1)
    monkeypatch.setattr(in_rows, "ROWS_PER_PACK", 1)
    writer = TraceWriter(tmp_path)
    (tmp_path / "decisions").rmdir()
    with pytest.raises(FileNotFoundError):  # noqa: PT012  When it is noticed is for chance to say.
        for number in range(10):
            writer.decisions.add(decision(number))
        writer.close()
