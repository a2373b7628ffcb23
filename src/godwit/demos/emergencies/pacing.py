"""The clock of the scenario: it stands still until all subscribers have subscribed.

On a busy machine logins take longer than planned.  Reports before that would reach no subscriber;
the time for reports starts afterwards and is not shortened.
"""

from __future__ import annotations

import asyncio
import time


class Pacing:
    def __init__(self, subscribed_s: float, *, waits_for: int) -> None:
        """The clock waits for this many calls of `subscribed`."""
        self._subscribed_s = subscribed_s
        self._missing = waits_for
        self._all_subscribed = asyncio.Event()
        self._start_s = time.monotonic()

    @property
    def now_s(self) -> float:
        """Time since the start of the scenario."""
        passed_s = time.monotonic() - self._start_s
        return passed_s if self._all_subscribed.is_set() else min(passed_s, self._subscribed_s)

    def subscribed(self) -> None:
        """One more subscriber is done."""
        self._missing -= 1
        if not self._missing:
            late_s = time.monotonic() - self._start_s - self._subscribed_s
            self._start_s += max(0.0, late_s)
            self._all_subscribed.set()

    async def until(self, at_s: float) -> None:
        if at_s > self._subscribed_s:
            await self._all_subscribed.wait()
        pause_s = self._start_s + at_s - time.monotonic()
        if pause_s > 0:
            await asyncio.sleep(pause_s)
