"""A server with a queue: one thing at a time, control before normal, otherwise first come first
served.  The matching engine of a broker is one, its output another.

A server that is free starts at once, without a turn through the agenda; only what has to wait
is woken later.  That halves the number of events in an overlay that is not overloaded, and
changes no time and no order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from godwit.simulation.agenda import Agenda

T = TypeVar("T")


class Server(Generic[T]):
    """`serve(item, start_s)` does the work and answers when the server is free again."""

    def __init__(self, agenda: Agenda, serve: Callable[[T, float], float]) -> None:
        self._agenda = agenda
        self._serve = serve
        self._control: deque[tuple[float, T]] = deque()
        self._normal: deque[tuple[float, T]] = deque()
        self._free_at_s = 0.0
        self._wake_at_s: float | None = None

    def __len__(self) -> int:
        """How many wait."""
        return len(self._control) + len(self._normal)

    def offer(self, item: T, is_control: bool, ready_s: float) -> None:
        """Serve `item` as soon as possible, not before `ready_s`.  Offers come in order of it."""
        if self._free_at_s <= ready_s and not self._normal and not self._control:
            self._free_at_s = self._serve(item, ready_s)
            return
        (self._control if is_control else self._normal).append((ready_s, item))
        self._wake(max(self._free_at_s, self._agenda.now_s))

    def pause(self, until_s: float) -> None:
        """Start nothing new before `until_s`."""
        self._free_at_s = max(self._free_at_s, until_s)

    def clear(self) -> list[T]:
        """Forget what waits and what is being served; the answer is what waited."""
        dropped = [item for lane in (self._control, self._normal) for _, item in lane]
        self._control.clear()
        self._normal.clear()
        self._free_at_s = self._agenda.now_s
        return dropped

    def _wake(self, at_s: float) -> None:
        if self._wake_at_s is None:
            self._wake_at_s = at_s
            self._agenda.plan(at_s, self._on_wake)

    def _on_wake(self) -> None:
        self._wake_at_s = None
        now_s = self._agenda.now_s
        if now_s < self._free_at_s:  # It was paused meanwhile.
            if len(self):
                self._wake(self._free_at_s)
            return
        lane = self._ready_lane(now_s)
        if lane is not None:
            _, item = lane.popleft()
            self._free_at_s = self._serve(item, now_s)
        if len(self):
            heads_s = [lane[0][0] for lane in (self._control, self._normal) if lane]
            self._wake(max(self._free_at_s, min(heads_s)))

    def _ready_lane(self, now_s: float) -> deque[tuple[float, T]] | None:
        for lane in (self._control, self._normal):
            if lane and lane[0][0] <= now_s:
                return lane
        return None
