"""Sums by key over the last seconds: moving averages of rates.

The window is cut into slices.  A slice leaves the window as a whole, when it began more than
`window_s` ago.  Memory: an entry for each key in each slice.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

WINDOW_S = 60.0
SLICE_S = 5.0

K = TypeVar("K")


class RateWindow(Generic[K]):
    __slots__ = ("_slices", "_totals", "window_s")

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self.window_s = window_s
        self._slices: deque[tuple[float, dict[K, int]]] = deque()
        self._totals: dict[K, int] = {}

    def add(self, key: K, amount: int, now_s: float) -> None:
        if not self._slices or now_s - self._slices[-1][0] >= SLICE_S:
            self._slices.append((now_s, {}))
        newest = self._slices[-1][1]
        newest[key] = newest.get(key, 0) + amount
        self._totals[key] = self._totals.get(key, 0) + amount

    def forget_old(self, now_s: float) -> None:
        """Drop the slices that have left the window.  Call it before `per_s`."""
        while self._slices and now_s - self._slices[0][0] > self.window_s:
            _, old = self._slices.popleft()
            for key, amount in old.items():
                remaining = self._totals.get(key, 0) - amount
                if remaining:
                    self._totals[key] = remaining
                else:  # Later slices may hold zeros of it.
                    self._totals.pop(key, None)

    def drop(self, key: K) -> None:
        if self._totals.pop(key, None) is not None:
            for _, amounts in self._slices:
                amounts.pop(key, None)

    def per_s(self, key: K, age_s: float) -> float:
        """The rate of a key that has been counted for `age_s`."""
        return self._totals.get(key, 0) / min(self.window_s, age_s)
