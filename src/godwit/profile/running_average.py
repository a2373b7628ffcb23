"""Averages that follow the newest values, in constant memory.

Paper    Cheung, thesis 5.1.1: a running average weighs the newest value 0.25 and the old 0.75.

The two differ in how they begin.  `weighted` takes the first value as it is, so its weight falls
slowly.  A `RunningMean` is the mean of all values until there are 1 / weight of them.
"""

from __future__ import annotations

#: The thesis's, for the newest value.
NEWEST_WEIGHT = 0.25


def weighted(old: float, new: float, newest_weight: float = NEWEST_WEIGHT) -> float:
    """The running average `old` after a new value."""
    return newest_weight * new + (1.0 - newest_weight) * old


class RunningMean:
    """The mean of the first values; from 1 / weight values on, the newest has the weight."""

    __slots__ = ("_count", "_weight", "value")

    def __init__(self, newest_weight: float = NEWEST_WEIGHT) -> None:
        self.value = 0.0
        self._weight = newest_weight
        self._count = 0

    def add(self, value: float) -> None:
        self._count += 1
        self.value += (value - self.value) * max(self._weight, 1.0 / self._count)
