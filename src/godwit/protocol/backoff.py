"""Exponential back-off: how long to wait before the next attempt.

    failures in a row:  1        2          3          ...
    wait:               first_s  2 first_s  4 first_s  ... up to max_s

`backoff_s` is the schedule, for callers with a clock of their own.  `Backoff` waits by it, and
shortens each wait at random, so that peers that failed together do not return together.
"""

from __future__ import annotations

import asyncio
import random

FIRST_S = 0.05
MAX_S = 1.0
#: Each wait is shortened by up to this share of it.
JITTER = 0.5
#: Beyond that any wait is at its maximum; a larger exponent might overflow.
DOUBLINGS_MAX = 64


def backoff_s(failures: int, *, first_s: float, max_s: float) -> float:
    """The wait after so many failures in a row, at least one."""
    return min(first_s * 2.0 ** min(failures - 1, DOUBLINGS_MAX), max_s)


class Backoff:
    """The waits between attempts at one thing."""

    def __init__(
        self, *, first_s: float = FIRST_S, max_s: float = MAX_S, jitter: float = JITTER
    ) -> None:
        self._first_s = first_s
        self._max_s = max_s
        self._jitter = jitter
        self._failures = 0

    def reset(self) -> None:
        """An attempt has succeeded: the next wait is the first again."""
        self._failures = 0

    async def wait(self) -> None:
        """Wait after an attempt that has failed."""
        self._failures += 1
        wait_s = backoff_s(self._failures, first_s=self._first_s, max_s=self._max_s)
        await asyncio.sleep(wait_s * random.uniform(1.0 - self._jitter, 1.0))
