"""Virtual time: a heap of planned actions.  Actions at equal times keep the order of planning."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Any, TypeAlias

Action: TypeAlias = Callable[..., object]
Item: TypeAlias = tuple[float, int, Action, Any, Any]


class Agenda:
    __slots__ = ("_items", "_planned", "now_s")

    def __init__(self) -> None:
        self.now_s = 0.0
        self._items: list[Item] = []
        self._planned = count()

    def __len__(self) -> int:
        return len(self._items)

    def plan(self, at_s: float, action: Action, *args: Any) -> None:
        """Call `action(*args)` when the clock shows `at_s`."""
        assert at_s >= self.now_s, "an action cannot be planned in the past"
        heappush(self._items, (at_s, next(self._planned), _call, action, args))

    def plan_arrival(self, at_s: float, arrive: Action, what: object, departed_s: float) -> None:
        """As `plan(at_s, arrive, what, departed_s)`, but faster: messages use this."""
        assert at_s >= self.now_s, "nothing can arrive in the past"
        heappush(self._items, (at_s, next(self._planned), arrive, what, departed_s))

    def cancel(self, doomed: Callable[[Action, Any, float], bool]) -> list[Any]:
        """Cancel every arrival that is `doomed`; return what would have arrived."""
        kept: list[Item] = []
        cancelled: list[Any] = []
        for item in self._items:
            _, _, arrive, what, departed_s = item
            if arrive is not _call and doomed(arrive, what, departed_s):
                cancelled.append(what)
            else:
                kept.append(item)
        self._items[:] = kept
        heapify(self._items)
        return cancelled

    def run(self, *, until_s: float) -> None:
        """Run everything planned up to `until_s`, and set the clock to that time."""
        items = self._items
        while items:
            item = heappop(items)
            at_s, _, arrive, what, departed_s = item
            if at_s > until_s:
                heappush(items, item)
                break
            self.now_s = at_s
            arrive(what, departed_s)
        if until_s != inf:
            self.now_s = until_s


def _call(action: Action, args: tuple[Any, ...]) -> None:
    action(*args)
