"""Bytes per second of each back-end subscription: the lambda of the load model.

A moving average over the last WINDOW_S.  Channels execute every few seconds to minutes; the window
should hold several executions.  A young subscription has no rate yet: the broker that held it
before has a better one.
"""

from __future__ import annotations

from collections.abc import Iterable

from godwit.profile.rate_window import WINDOW_S, RateWindow

YOUNG_S = 20.0


class Rates:
    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window = RateWindow[int](window_s)
        self._began_s: dict[int, float] = {}

    def begin(self, subscription: int, now_s: float) -> None:
        """Count what the subscription brings from now on."""
        self._began_s.setdefault(subscription, now_s)

    def end(self, subscription: int) -> None:
        self._began_s.pop(subscription, None)

    def add(self, subscription: int, size_bytes: int, now_s: float) -> None:
        self._window.add(subscription, size_bytes, now_s)

    def bytes_per_s(self, subscriptions: Iterable[int], now_s: float) -> dict[int, float]:
        """Rates of those that have been counted for long enough."""
        self._window.forget_old(now_s)
        found: dict[int, float] = {}
        for id in subscriptions:
            age_s = now_s - self._began_s.get(id, now_s)
            if age_s >= YOUNG_S:
                found[id] = self._window.per_s(id, age_s)
        return found
