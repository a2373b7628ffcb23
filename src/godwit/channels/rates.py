"""How many bytes per second each back-end subscription brings in: the lambda of the load model.

A moving average: what came in during the last WINDOW_S, in slices, so that a slice is forgotten as
a whole.  Channels come round every so many seconds; the window should hold several of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

WINDOW_S = 60.0
SLICE_S = 5.0


class Rates:
    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._slices: deque[tuple[float, dict[int, int]]] = deque()
        self._total: dict[int, int] = {}
        self._start_s: float | None = None

    def add(self, subscription: int, size_bytes: int, now_s: float) -> None:
        if self._start_s is None:
            self._start_s = now_s
        if not self._slices or now_s - self._slices[-1][0] >= SLICE_S:
            self._slices.append((now_s, {}))
        newest = self._slices[-1][1]
        newest[subscription] = newest.get(subscription, 0) + size_bytes
        self._total[subscription] = self._total.get(subscription, 0) + size_bytes

    def bytes_per_s(self, subscriptions: Iterable[int], now_s: float) -> dict[int, float]:
        self._forget(now_s)
        if self._start_s is None:
            return dict.fromkeys(subscriptions, 0.0)
        # In the beginning there has been less than a window.
        span_s = min(self._window_s, max(now_s - self._start_s, SLICE_S))
        return {id: self._total.get(id, 0) / span_s for id in subscriptions}

    def _forget(self, now_s: float) -> None:
        while self._slices and now_s - self._slices[0][0] > self._window_s:
            _, old = self._slices.popleft()
            for id, size_bytes in old.items():
                self._total[id] -= size_bytes
                if not self._total[id]:
                    del self._total[id]
