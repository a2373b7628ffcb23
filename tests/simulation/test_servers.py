"""The queueing of a simulated server, and virtual time itself."""

from __future__ import annotations

import pytest

from godwit.simulation.agenda import Agenda
from godwit.simulation.servers import Server


class Log:
    """A server of one-second jobs that writes down when each starts."""

    def __init__(self) -> None:
        self.agenda = Agenda()
        self.started: list[tuple[str, float]] = []
        self.server = Server[str](self.agenda, self._serve)

    def _serve(self, item: str, start_s: float) -> float:
        self.started.append((item, start_s))
        return start_s + 1.0

    def offer_ready(self, item: str, is_control: bool, ready_s: float) -> None:
        if self.server.free_at_s <= ready_s and not self.server.waiting:
            self.server.free_at_s = self._serve(item, ready_s)
        else:
            self.server.wait(item, is_control, ready_s)

    def offer(self, item: str, at_s: float, *, is_control: bool = False) -> None:
        def now() -> None:
            self.offer_ready(item, is_control, self.agenda.now_s)

        self.agenda.plan(at_s, now)


def test_a_free_server_starts_at_once_and_others_wait_their_turn() -> None:
    log = Log()
    log.offer("a", 0.0)
    log.offer("b", 0.5)
    log.offer("c", 0.6)
    log.offer("d", 5.0)
    log.agenda.run(until_s=10.0)

    assert log.started == [("a", 0.0), ("b", 1.0), ("c", 2.0), ("d", 5.0)]


def test_control_goes_before_what_waits_but_does_not_interrupt() -> None:
    log = Log()
    log.offer("a", 0.0)
    log.offer("b", 0.1)
    log.offer("control", 0.2, is_control=True)
    log.agenda.run(until_s=10.0)

    assert log.started == [("a", 0.0), ("control", 1.0), ("b", 2.0)]


def test_what_is_announced_ahead_of_time_is_not_counted_among_the_waiting() -> None:
    log = Log()
    log.offer_ready("a", False, 0.0)
    log.offer_ready("b", False, 0.0)
    log.offer_ready("c", False, 0.5)
    log.offer_ready("control", True, 0.5)

    assert (log.server.waiting, log.server.ready) == (3, 1)
    log.agenda.run(until_s=0.5)
    assert (log.server.waiting, log.server.ready) == (3, 3)


def test_what_is_ready_later_is_not_started_earlier() -> None:
    """An engine hands its results over before they are ready; normal work may go in between."""
    log = Log()
    log.offer_ready("a", False, 0.0)
    log.offer_ready("b", False, 0.5)
    log.offer_ready("control", True, 3.0)
    log.agenda.run(until_s=10.0)

    assert log.started == [("a", 0.0), ("b", 1.0), ("control", 3.0)]


def test_a_paused_server_starts_nothing_before_the_pause_ends() -> None:
    log = Log()
    log.offer("a", 0.0)
    log.offer("b", 0.5)
    log.agenda.plan(0.6, lambda: log.server.pause(4.0))
    log.offer("c", 2.0)
    log.agenda.run(until_s=10.0)

    assert log.started == [("a", 0.0), ("b", 4.0), ("c", 5.0)]


def test_a_cleared_server_forgets_and_is_free() -> None:
    log = Log()
    log.offer("a", 0.0)
    log.offer("b", 0.1)
    log.offer("control", 0.2, is_control=True)
    dropped: list[str] = []
    log.agenda.plan(0.3, lambda: dropped.extend(log.server.clear()))
    log.offer("c", 0.4)
    log.agenda.run(until_s=10.0)

    assert dropped == ["control", "b"]
    assert log.started == [("a", 0.0), ("c", 0.4)]


def test_a_server_that_was_cleared_while_paused_does_not_wait_for_the_old_pause() -> None:
    log = Log()
    log.agenda.plan(0.0, lambda: log.server.pause(100.0))
    log.offer("forgotten", 1.0)
    log.agenda.plan(2.0, log.server.clear)
    log.offer("a", 3.0)
    log.offer("b", 3.5)
    log.agenda.run(until_s=200.0)

    assert log.started == [("a", 3.0), ("b", 4.0)]


def test_equal_times_keep_the_order_of_planning() -> None:
    agenda = Agenda()
    done: list[int] = []
    for number in range(5):
        agenda.plan(1.0, done.append, number)
    agenda.run(until_s=2.0)

    assert done == [0, 1, 2, 3, 4]
    assert agenda.now_s == 2.0


def test_the_past_is_closed() -> None:
    agenda = Agenda()
    agenda.run(until_s=5.0)

    with pytest.raises(AssertionError, match="planned in the past"):
        agenda.plan(4.0, print)


def test_arrivals_that_are_doomed_are_cancelled_and_the_rest_stays_in_order() -> None:
    agenda = Agenda()
    done: list[int] = []
    for number in (3, 1, 2, 4):
        agenda.plan_arrival(float(number), lambda what, _at_s: done.append(what), number, 0.0)
        agenda.plan(float(number), done.append, 10 + number)

    assert sorted(agenda.cancel(lambda _arrive, what, _at_s: what % 2 == 0)) == [2, 4]
    agenda.run(until_s=9.0)
    assert done == [1, 11, 12, 3, 13, 14]
