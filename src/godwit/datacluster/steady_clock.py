"""The one clock of a data cluster: seconds since 1970 that never go back and never jump.

Due times, moments of executions, times of acceptance, and how long records and results are kept
are compared with each other.  If the machine's clock is set by an hour, a comparison with the time
before would delay channels for an hour, or delete what is still wanted.

K1  Times never decrease, also over a restart: the catalog has the last ones (`last_known_s`).
K2  A clock that was set is followed slowly: SLEW of the time that passes, until both agree.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

#: A minute's difference is made up in less than an hour, an hour's in two days.
SLEW = 0.02
#: A catalog that is further ahead was written while the machine's clock was wrong.
AHEAD_S_MAX = 86_400.0


def passing_s() -> float:
    """Time that passes, also while the machine is suspended, whatever the clock is set to."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class SteadyClock:
    """May be used from several threads."""

    def __init__(
        self,
        last_known_s: float = 0.0,
        *,
        machine_s: Callable[[], float] = time.time,
        passing_s: Callable[[], float] = passing_s,
    ) -> None:
        self._machine_s = machine_s
        self._passing_s = passing_s
        self._lock = threading.Lock()
        self._at_s = passing_s()
        self._now_s = machine_s()
        if self._now_s < last_known_s <= self._now_s + AHEAD_S_MAX:  # K1
            self._now_s = last_known_s

    def __call__(self) -> float:
        with self._lock:
            at_s = self._passing_s()
            elapsed_s = at_s - self._at_s
            behind_s = self._machine_s() - (self._now_s + elapsed_s)
            step_s = min(max(behind_s, -SLEW * elapsed_s), SLEW * elapsed_s)  # K2
            self._now_s += elapsed_s + step_s
            self._at_s = at_s
            return self._now_s

    @property
    def ahead_s(self) -> float:
        """Of the machine's clock."""
        return self() - self._machine_s()
