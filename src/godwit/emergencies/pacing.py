"""Time in the scenario: it stands still until everybody has subscribed.

On a busy machine people take longer to log in than they were given.  What is reported before would
be told to nobody, and what is reported afterwards has its full time.
"""

from __future__ import annotations

import asyncio
import time


class Pacing:
    def __init__(self, subscribed_s: float, *, waits_for: int) -> None:
        """`waits_for` people are to say that they have subscribed."""
        self._subscribed_s = subscribed_s
        self._missing = waits_for
        self._all_subscribed = asyncio.Event()
        self._start_s = time.monotonic()

    @property
    def now_s(self) -> float:
        """Since the beginning."""
        passed_s = time.monotonic() - self._start_s
        return passed_s if self._all_subscribed.is_set() else min(passed_s, self._subscribed_s)

    def subscribed(self) -> None:
        """Another one has."""
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
