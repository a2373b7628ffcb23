"""How many bytes per second each back-end subscription brings in: the lambda of the load model.

A moving average: what came in during the last WINDOW_S, in slices, so that a slice is forgotten as
a whole.  Channels come round every so many seconds; the window should hold several of them.  Of a
subscription that is young nothing is said: somebody else may know more, who had it before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

WINDOW_S = 60.0
SLICE_S = 5.0
YOUNG_S = 20.0


class Rates:
    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._slices: deque[tuple[float, dict[int, int]]] = deque()
        self._total: dict[int, int] = {}
        self._began_s: dict[int, float] = {}

    def begin(self, subscription: int, now_s: float) -> None:
        """What it brings counts from now on."""
        self._began_s.setdefault(subscription, now_s)

    def end(self, subscription: int) -> None:
        self._began_s.pop(subscription, None)

    def add(self, subscription: int, size_bytes: int, now_s: float) -> None:
        if not self._slices or now_s - self._slices[-1][0] >= SLICE_S:
            self._slices.append((now_s, {}))
        newest = self._slices[-1][1]
        newest[subscription] = newest.get(subscription, 0) + size_bytes
        self._total[subscription] = self._total.get(subscription, 0) + size_bytes

    def bytes_per_s(self, subscriptions: Iterable[int], now_s: float) -> dict[int, float]:
        """Of those that are known for long enough."""
        self._forget(now_s)
        found: dict[int, float] = {}
        for id in subscriptions:
            age_s = now_s - self._began_s.get(id, now_s)
            if age_s >= YOUNG_S:
                found[id] = self._total.get(id, 0) / min(self._window_s, age_s)
        return found

    def _forget(self, now_s: float) -> None:
        while self._slices and now_s - self._slices[0][0] > self._window_s:
            _, old = self._slices.popleft()
            for id, size_bytes in old.items():
                self._total[id] -= size_bytes
                if not self._total[id]:
                    del self._total[id]
