"""A server with a queue: one item at a time, control before normal, otherwise first come first
served.  A broker has two: its matching engine and its output.

A server that is free starts at once, without the queue or the agenda; only items that wait need a
wake-up.  That halves the number of events in an overlay that is not overloaded, and changes no time
and no order.  Callers inline it, because they do it for every message:

    if server.free_at_s <= now_s and not server.waiting:
        server.free_at_s = serve(item, now_s)
    else:
        server.wait(item, is_control, now_s)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from godwit.content.messages import Message, MoveTo, Notice, Publication, is_control_content
from godwit.simulation.agenda import Agenda

T = TypeVar("T")


class Server(Generic[T]):
    """`serve(item, start_s)` processes an item that waited, and returns when it is done."""

    __slots__ = (
        "_agenda", "_control", "_normal", "_serve", "_wake_planned", "free_at_s", "waiting",
    )  # fmt: skip

    def __init__(self, agenda: Agenda, serve: Callable[[T, float], float]) -> None:
        self.free_at_s = 0.0
        self.waiting = 0
        self._agenda = agenda
        self._serve = serve
        self._control: deque[tuple[float, T]] = deque()
        self._normal: deque[tuple[float, T]] = deque()
        self._wake_planned: object | None = None

    def wait(self, item: T, is_control: bool, ready_s: float) -> None:
        """Serve `item` when its turn comes, not before `ready_s`.  Items come in order of it."""
        (self._control if is_control else self._normal).append((ready_s, item))
        self.waiting += 1
        self._wake(max(self.free_at_s, self._agenda.now_s))

    @property
    def ready(self) -> int:
        """How many items wait and are ready; the last ones may be queued ahead of their time."""
        now_s = self._agenda.now_s
        ahead = 0
        for lane in (self._control, self._normal):
            for ready_s, _ in reversed(lane):
                if ready_s <= now_s:
                    break
                ahead += 1
        return self.waiting - ahead

    def pause(self, until_s: float) -> None:
        """Start nothing new before `until_s`."""
        self.free_at_s = max(self.free_at_s, until_s)

    def clear(self) -> list[T]:
        """Drop what waits and what is being served; return what waited."""
        dropped = [item for lane in (self._control, self._normal) for _, item in lane]
        self._control.clear()
        self._normal.clear()
        self.waiting = 0
        self.free_at_s = self._agenda.now_s
        self._wake_planned = None  # The planned wake-up will find that it is cancelled.
        return dropped

    def _wake(self, at_s: float) -> None:
        if self._wake_planned is None:
            self._wake_planned = object()
            self._agenda.plan(at_s, self._on_wake, self._wake_planned)

    def _on_wake(self, planned: object) -> None:
        if planned is not self._wake_planned:
            return
        self._wake_planned = None
        now_s = self._agenda.now_s
        if now_s >= self.free_at_s:  # Else it was paused meanwhile.
            for lane in (self._control, self._normal):
                if lane and lane[0][0] <= now_s:
                    _, item = lane.popleft()
                    self.waiting -= 1
                    self.free_at_s = self._serve(item, now_s)
                    break
        if self.waiting:
            ready_s = min(lane[0][0] for lane in (self._control, self._normal) if lane)
            self._wake(max(self.free_at_s, ready_s))


def goes_first(message: Message | Notice) -> bool:
    """Whether a message overtakes others: by its content, which is set before the stamp.

    A request to move does: a client of an overloaded broker would learn of it last.
    """
    if isinstance(message, Publication):
        return is_control_content(message.content)
    return isinstance(message, MoveTo)
