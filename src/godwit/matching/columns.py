"""Boxes as columns of bounds: NumPy compares many boxes with a point at once.

    slot   which   lows         highs
       0   3 1 0   5  -inf -inf    9  20  inf     attribute 3 in [5, 9] and attribute 1 up to 20
       1   2 0 0   ...

Every box takes one row, with as many cells as the largest box has intervals.  Number 0 stands for
no attribute: it fills the rest of a row, and every point has the value 0 there.

Intervals are closed, and they and points are in float64; see shapes.py for why that is exact, and
for the boxes that need another check.
"""

from __future__ import annotations

from math import inf, nan
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from godwit.content.values import Record
from godwit.matching.scan import is_number

Slots: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]

#: Further intervals of a box are checked one by one.  Wider rows would cost memory for every box.
INTERVALS_MAX = 6

LOW, HIGH = 0, 1


class Columns:
    """The bounds of boxes, by slot."""

    def __init__(self, capacity: int, width: int) -> None:
        #: The number of each attribute on which some box has an interval.
        self.numbers: dict[str, int] = {}
        self._which = np.zeros((capacity, width), dtype=np.int32)
        # Lows and highs in one array, because they are always read together.
        self._bounds = np.empty((capacity, 2, width))
        self._bounds[:, LOW] = -inf
        self._bounds[:, HIGH] = inf

    @property
    def width(self) -> int:
        return self._which.shape[1]

    def resized(self, kept: Slots | slice, capacity: int, width: int) -> Columns:
        """A copy with the boxes of the `kept` slots in front, under the same numbers."""
        copy = Columns(capacity, width)
        copy.numbers = self.numbers
        which = self._which[kept]
        copy._which[: len(which), : self.width] = which
        copy._bounds[: len(which), :, : self.width] = self._bounds[kept]
        return copy

    def renumber(self) -> None:
        """Remove the attributes that no box uses any more."""
        used = np.flatnonzero(self.uses())
        new_numbers = np.zeros(1 + len(self.numbers), dtype=np.int32)
        new_numbers[used] = np.arange(1, 1 + len(used))
        # The order is kept: `point` relies on it.
        kept = {name: int(new_numbers[number]) for name, number in self.numbers.items()}
        self.numbers = {name: number for name, number in kept.items() if number}
        self._which = new_numbers[self._which]

    def write(self, slot: int, intervals: tuple[tuple[str, float, float], ...]) -> None:
        for cell, (attribute, low, high) in enumerate(intervals):
            number = self.numbers.setdefault(attribute, 1 + len(self.numbers))
            self._which[slot, cell] = number
            self._bounds[slot, LOW, cell] = low
            self._bounds[slot, HIGH, cell] = high

    def erase(self, slot: int) -> None:
        self._which[slot] = 0
        self._bounds[slot, LOW] = -inf
        self._bounds[slot, HIGH] = inf

    def intervals(self, slot: int) -> list[tuple[int, float, float]]:
        which = self._which[slot].tolist()
        lows, highs = self._bounds[slot].tolist()
        return [row for row in zip(which, lows, highs, strict=True) if row[0]]

    def intervals_on(
        self, number: int, step: slice
    ) -> tuple[Slots, NDArray[np.float64], NDArray[np.float64]]:
        """The intervals on one attribute: slots counted from the start of `step`, lows, highs."""
        slots, cells = np.nonzero(self._which[step] == number)
        bounds = self._bounds[step]
        return slots, bounds[slots, LOW, cells], bounds[slots, HIGH, cells]

    def uses(self) -> NDArray[np.intp]:
        """How many boxes have an interval on each attribute."""
        counts = np.bincount(self._which.ravel(), minlength=1 + len(self.numbers))
        counts[0] = 0
        return counts

    def finite_bounds(self, number: int) -> NDArray[np.float64]:
        _, lows, highs = self.intervals_on(number, slice(None))
        bounds = np.concatenate((lows, highs))
        finite: NDArray[np.float64] = bounds[np.isfinite(bounds)]
        return finite

    def point(self, record: Record) -> list[float]:
        """The values of `record` by attribute number; NaN, which is in no interval, if absent."""
        get = record.get
        point = [0.0]
        for attribute in self.numbers:
            value = get(attribute)
            if type(value) is float:
                point.append(value)
            else:
                point.append(float(value) if is_number(value) else nan)
        return point

    def holding(self, slots: Slots, point: list[float]) -> Slots:
        """Those of `slots` whose boxes hold `point`."""
        values = np.array(point).take(self._which.take(slots, axis=0))
        bounds = self._bounds.take(slots, axis=0)
        holds: Mask = bounds[:, LOW] <= values
        holds &= values <= bounds[:, HIGH]
        return slots[np.logical_and.reduce(holds, axis=1)]
