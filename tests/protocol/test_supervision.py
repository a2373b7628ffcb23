"""Activities go on, whatever goes wrong in them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

import pytest

from godwit.errors import PeerError, UnreachableError
from godwit.protocol.backoff import Backoff
from godwit.protocol.supervision import LOGGED_MAX, Supervisor, survive
from godwit.testing.virtual_time import run_in_virtual_time

log = logging.getLogger("godwit.test")


class Activity:
    """Raises the given errors in turn, None for a step that works, and waits after the last."""

    def __init__(self, *errors: Exception | None) -> None:
        self.errors = list(errors)
        self.steps_s: list[float] = []
        self.is_done = asyncio.Event()

    async def step(self) -> None:
        self.steps_s.append(asyncio.get_running_loop().time())
        if not self.errors:
            self.is_done.set()
            await asyncio.Event().wait()
        error = self.errors.pop(0)
        if error is not None:
            raise error


def supervise(
    supervisor: Supervisor, *errors: Exception | None, backoff: Callable[[], Backoff] = Backoff
) -> list[float]:
    """When each step began."""

    async def scenario() -> list[float]:
        activity = Activity(*errors)
        running = asyncio.create_task(supervisor.run(activity.step, backoff()))
        await activity.is_done.wait()
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        assert running.cancelled()
        return activity.steps_s

    return run_in_virtual_time(scenario())


def messages(caplog: pytest.LogCaptureFixture) -> list[tuple[str, object]]:
    return [(record.levelname, record.__dict__.get("error")) for record in caplog.records]


def test_it_goes_on_after_any_error_and_remembers_the_last(
    caplog: pytest.LogCaptureFixture,
) -> None:
    supervisor = Supervisor(log, "link", trouble="not linked yet", peer="B2")
    assert supervisor.trouble == "not linked yet"
    supervisor.fail(PeerError("not up"))
    assert messages(caplog) == [], "it has not worked yet: that is information, not a warning"
    supervisor.recover()
    steps_s = supervise(supervisor, PeerError("gone"), LookupError("a bug"))
    assert len(steps_s) == 3
    assert supervisor.trouble == "LookupError: a bug"
    assert messages(caplog) == [("WARNING", "gone"), ("ERROR", None)]
    assert caplog.records[1].exc_info is not None
    assert {record.__dict__["peer"] for record in caplog.records} == {"B2"}


def test_it_waits_with_back_off_after_errors_only() -> None:
    gone = UnreachableError("gone")
    steps_s = supervise(
        Supervisor(log, "link"),
        *(gone, gone, None, gone),
        backoff=lambda: Backoff(first_s=1.0, max_s=9.0, jitter=0.0),
    )
    assert steps_s == pytest.approx([0.0, 1.0, 3.0, 3.0, 4.0])


def test_a_repeated_error_is_logged_once_until_it_works_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    supervisor = Supervisor(log, "link", level=logging.ERROR)
    for text in ("refused", "timed out", "refused"):
        supervisor.fail(OSError(text))
    assert messages(caplog) == [("ERROR", "refused"), ("ERROR", "timed out")]
    supervisor.recover()
    assert supervisor.trouble is None
    supervisor.fail(OSError("refused"))
    assert len(caplog.records) == 3


def test_errors_that_all_differ_are_not_remembered_for_ever(
    caplog: pytest.LogCaptureFixture,
) -> None:
    supervisor = Supervisor(log, "link")
    for number in range(2 * LOGGED_MAX):
        supervisor.fail(OSError(f"attempt {number}"))
    assert len(caplog.records) == 2 * LOGGED_MAX
    assert len(supervisor._logged) == LOGGED_MAX


def test_an_error_without_a_text_is_called_by_its_kind() -> None:
    supervisor = Supervisor(log, "link")
    supervisor.fail(TimeoutError())
    assert supervisor.trouble == "TimeoutError"


def test_one_step_that_fails_is_logged_and_survived(caplog: pytest.LogCaptureFixture) -> None:
    with survive(log, "compaction failed", dataset="Reports"):
        raise LookupError("a bug")
    (record,) = caplog.records
    assert (record.getMessage(), record.__dict__["dataset"]) == ("compaction failed", "Reports")
    assert record.exc_info is not None


def test_cancellation_is_not_survived() -> None:
    with pytest.raises(asyncio.CancelledError), survive(log, "failed"):
        raise asyncio.CancelledError
