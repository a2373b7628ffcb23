"""Timers of a module: at most one for each purpose, and none that fires for nothing.

A broker cannot take a timer back.  So each has a number: if a purpose was set again or cancelled
since, the old number means nothing.  Whether a time is over is decided by the timer alone, never
by comparing clocks: the wall clock of a live broker may jump.

A1  `due` answers with a purpose once for each `set` that was not replaced or cancelled.
"""

from __future__ import annotations

from godwit.broker.modules import Timer


class Alarms:
    __slots__ = ("_numbers", "_serial")

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._serial = 0

    def set(self, purpose: str, at_s: float) -> Timer:
        """Set the timer of a purpose; an earlier one is cancelled."""
        self._serial += 1
        self._numbers[purpose] = self._serial
        return Timer(f"{purpose}#{self._serial}", at_s)

    def cancel(self, purpose: str) -> None:
        self._numbers.pop(purpose, None)

    def cancel_all(self) -> None:
        self._numbers.clear()

    def is_set(self, purpose: str) -> bool:
        return purpose in self._numbers

    def due(self, name: str) -> str | None:
        """The purpose of a timer that has fired; None if it was replaced or cancelled."""
        purpose, _, number = name.rpartition("#")
        if self._numbers.get(purpose) != int(number):
            return None
        del self._numbers[purpose]
        return purpose
