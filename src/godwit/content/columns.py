"""Boxes as columns of bounds, so that NumPy compares many boxes with a point at once.

    slot   which   lows         highs
       0   3 1 0   5  -inf -inf    9  20  inf     attribute 3 in [5, 9] and attribute 1 up to 20
       1   2 0 0   ...

Every box takes one row and as many cells as the largest has intervals.  Attribute 0 is no
attribute: it fills the rest of a row, and a point always has the value 0 there.

The intervals are closed and in float64, and so are the points; see shapes.py for why that is
exact, and for the boxes that need a check on top.
"""

from __future__ import annotations

from math import inf, nan
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from godwit.content.groups import is_number
from godwit.content.shapes import Box
from godwit.content.values import Record

Slots: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]

#: What a box has more of must be checked one by one.  Wider rows would cost every box memory.
INTERVALS_MAX = 6


class Columns:
    """The bounds of boxes, by slot."""

    def __init__(self, capacity: int, width: int) -> None:
        #: The number of each attribute that some box has an interval on.
        self.numbers: dict[str, int] = {}
        self._which = np.zeros((capacity, width), dtype=np.int32)
        self._lows = np.full((capacity, width), -inf)
        self._highs = np.full((capacity, width), inf)

    @property
    def width(self) -> int:
        return self._which.shape[1]

    def resized(self, kept: Slots | slice, capacity: int, width: int) -> Columns:
        """A copy with the boxes of the `kept` slots in front, and of the attributes they use."""
        copy = Columns(capacity, width)
        which = self._which[kept]
        used = np.unique(which)
        renumbered = np.zeros(1 + len(self.numbers), dtype=np.int32)
        renumbered[used[used > 0]] = np.arange(1, 1 + np.count_nonzero(used))
        copy.numbers = {
            name: int(renumbered[number])
            for name, number in self.numbers.items()
            if renumbered[number]
        }
        copy._which[: len(which), : self.width] = renumbered[which]
        copy._lows[: len(which), : self.width] = self._lows[kept]
        copy._highs[: len(which), : self.width] = self._highs[kept]
        return copy

    def write(self, slot: int, box: Box) -> None:
        for cell, (attribute, low, high) in enumerate(box.intervals[:INTERVALS_MAX]):
            number = self.numbers.setdefault(attribute, 1 + len(self.numbers))
            self._which[slot, cell] = number
            self._lows[slot, cell] = low
            self._highs[slot, cell] = high

    def write_range(self, start: int, boxes: list[Box]) -> None:
        """Write `boxes` to the slots from `start` on."""
        rows: list[int] = []
        cells: list[int] = []
        which: list[int] = []
        lows: list[float] = []
        highs: list[float] = []
        for row, box in enumerate(boxes, start):
            for cell, (attribute, low, high) in enumerate(box.intervals[:INTERVALS_MAX]):
                rows.append(row)
                cells.append(cell)
                which.append(self.numbers.setdefault(attribute, 1 + len(self.numbers)))
                lows.append(low)
                highs.append(high)
        self._which[rows, cells] = which
        self._lows[rows, cells] = lows
        self._highs[rows, cells] = highs

    def erase(self, slot: int) -> None:
        self._which[slot] = 0
        self._lows[slot] = -inf
        self._highs[slot] = inf

    def intervals(self, slot: int) -> list[tuple[int, float, float]]:
        which = self._which[slot].tolist()
        rows = zip(which, self._lows[slot].tolist(), self._highs[slot].tolist(), strict=True)
        return [row for row in rows if row[0]]

    def intervals_on(
        self, number: int, step: slice
    ) -> tuple[Slots, NDArray[np.float64], NDArray[np.float64]]:
        """The intervals on one attribute: slots counted from the start of `step`, lows, highs."""
        slots, cells = np.nonzero(self._which[step] == number)
        return slots, self._lows[step][slots, cells], self._highs[step][slots, cells]

    def uses(self, boxes: int) -> NDArray[np.intp]:
        """How many of the first `boxes` boxes have an interval on each attribute."""
        counts = np.bincount(self._which[:boxes].ravel(), minlength=1 + len(self.numbers))
        counts[0] = 0
        return counts

    def finite_bounds(self, number: int, boxes: int) -> NDArray[np.float64]:
        _, lows, highs = self.intervals_on(number, slice(0, boxes))
        bounds = np.concatenate((lows, highs))
        return bounds[np.isfinite(bounds)]

    def point(self, record: Record) -> list[float]:
        """The values of `record` by attribute number: NaN, which is in no interval, for none."""
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
        holds = self._lows.take(slots, axis=0) <= values
        holds &= values <= self._highs.take(slots, axis=0)
        return slots[holds.all(axis=1)]

    def holding_batch(self, numbers: Slots, slots: Slots, points: NDArray[np.float64]) -> Mask:
        """For each pair of a point's number and a slot: does that box hold that point?"""
        values = points[numbers[:, np.newaxis], self._which.take(slots, axis=0)]
        holds = self._lows.take(slots, axis=0) <= values
        holds &= values <= self._highs.take(slots, axis=0)
        return holds.all(axis=1)
