"""Virtual time: a heap of planned actions.  Actions at equal times keep the order of planning."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Any, TypeAlias

Action: TypeAlias = Callable[..., object]
Item: TypeAlias = tuple[float, int, Action, tuple[Any, ...]]


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
        heappush(self._items, (at_s, next(self._planned), action, args))

    def cancel(self, doomed: Callable[[Action, tuple[Any, ...]], bool]) -> list[tuple[Any, ...]]:
        """Cancel everything planned that is `doomed`; return its arguments."""
        cancelled = [item[3] for item in self._items if doomed(item[2], item[3])]
        self._items[:] = [item for item in self._items if not doomed(item[2], item[3])]
        heapify(self._items)
        return cancelled

    def run(self, *, until_s: float) -> None:
        """Run everything planned up to `until_s`, and set the clock to that time."""
        items = self._items
        while items:
            item = heappop(items)
            at_s, _, action, args = item
            if at_s > until_s:
                heappush(items, item)
                break
            self.now_s = at_s
            action(*args)
        if until_s != inf:
            self.now_s = until_s
