"""Bitsets: candidates among many boxes for a point, by one AND for each attribute.

The range of each attribute (an axis) is cut into buckets at quantiles of the boxes' own bounds.
Each bucket has a row of bits, one for each box: 1 if the box can hold a point with a value in this
bucket.  A point selects one row on each axis; the AND of these rows gives the candidates, which are
the boxes that hold the point and a few more that have a bound in one of the point's buckets.

B1  No box that holds a point is missing from the point's candidates.
B2  The last row of an axis is for points without a number there: boxes that do not need one.
B3  A bit of a slot that no box uses is 1 on every axis, and 0 in row 0, the row of used slots.
    So adding or removing a box writes only to the axes on which it has intervals.

Attributes that few boxes use have no axis: candidates are compared exactly in any case.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from godwit.matching.columns import Columns

Bits: TypeAlias = NDArray[np.uint8]
Slots: TypeAlias = NDArray[np.intp]

BUCKETS_MAX = 64
AXES_MAX = 48
#: An attribute gets an axis if at least this share of the boxes use it ...
AXIS_SHARE_MIN = 1 / 64
#: ... and one bucket for so many bounds.
BOUNDS_PER_BUCKET = 8

_SLOTS_PER_WORD = 64
_SLOTS_PER_STEP = 16_384  # So that the working arrays of a bulk change stay in the cache.


@dataclass(frozen=True, slots=True)
class Axis:
    """One attribute and the rows of its buckets.

    Bucket b is the numbers with exactly b cuts at or below them.  The last cut is infinite, and
    both `bisect` and NumPy sort NaN behind it: the row of points without a number here (B2).
    """

    column: int
    cuts: list[float]
    row_first: int

    @property
    def buckets(self) -> int:
        return len(self.cuts)

    def bucket(self, value: float) -> int:
        return min(bisect_right(self.cuts, value), self.buckets - 1)


class Bitsets:
    """The rows of all axes, with room for a number of slots."""

    def __init__(self, capacity: int, axes: list[Axis]) -> None:
        self.axes = axes
        rows = 1 + sum(axis.buckets + 1 for axis in axes)
        self._rows: Bits = _blank_rows(rows, capacity)
        self._words = self._rows.view(np.uint64)

    @property
    def capacity(self) -> int:
        return 8 * len(self._rows[0])

    def grow(self, capacity: int) -> None:
        rows = _blank_rows(len(self._rows), capacity)
        rows[:, : self._rows.shape[1]] = self._rows
        self._rows = rows
        self._words = rows.view(np.uint64)

    def add(self, slot: int, intervals: Iterable[tuple[int, float, float]]) -> None:
        """Put the box with these intervals (column, low, high) into `slot`."""
        byte, bit = slot >> 3, 1 << (slot & 7)
        bounds = {column: (low, high) for column, low, high in intervals}
        for axis in self.axes:
            if axis.column in bounds:
                low, high = bounds[axis.column]
                column = self._rows[axis.row_first : axis.row_first + axis.buckets + 1, byte]
                column[: axis.bucket(low)] &= 255 - bit
                column[axis.bucket(high) + 1 :] &= 255 - bit
        self._rows[0, byte] |= bit

    def remove(self, slot: int, intervals: Iterable[tuple[int, float, float]]) -> None:
        byte, bit = slot >> 3, 1 << (slot & 7)
        columns = {column for column, _, _ in intervals}
        self._rows[0, byte] &= 255 - bit
        for axis in self.axes:
            if axis.column in columns:
                self._rows[axis.row_first : axis.row_first + axis.buckets + 1, byte] |= bit  # B3

    def add_range(self, start: int, stop: int, columns: Columns) -> None:
        """Put the boxes that `columns` has from `start` to `stop` into those slots."""
        byte_first, byte_end = start >> 3, (stop + 7) >> 3
        used = np.unpackbits(self._rows[0, byte_first:byte_end], bitorder="little")
        used[start - 8 * byte_first : stop - 8 * byte_first] = 1
        self._rows[0, byte_first:byte_end] = np.packbits(used, bitorder="little")
        for first in range(8 * byte_first, 8 * byte_end, _SLOTS_PER_STEP):
            step = slice(first, min(first + _SLOTS_PER_STEP, 8 * byte_end))
            for axis in self.axes:
                rows = slice(axis.row_first, axis.row_first + axis.buckets + 1)
                bits = _axis_bits(axis, columns, step)
                self._rows[rows, step.start >> 3 : step.stop >> 3] = bits

    def candidates(self, point: list[float]) -> Slots:
        """The slots of boxes that may hold `point`, which has a value (or NaN) for each column."""
        rows = [axis.row_first + bisect_right(axis.cuts, point[axis.column]) for axis in self.axes]
        rows.append(0)
        words = np.bitwise_and.reduce(self._words.take(rows, axis=0), axis=0)
        bits = np.unpackbits(words.view(np.uint8), bitorder="little")
        return np.flatnonzero(bits.view(np.bool_))


def choose_axes(columns: Columns, boxes: int) -> list[Axis]:
    """Axes for the attributes that many of the `boxes` boxes use, cut at quantiles."""
    axes: list[Axis] = []
    row_next = 1
    uses = columns.uses()
    for column in np.argsort(-uses)[:AXES_MAX].tolist():
        if uses[column] < max(1.0, boxes * AXIS_SHARE_MIN):
            break
        bounds = columns.finite_bounds(column)
        buckets = min(BUCKETS_MAX, max(2, len(bounds) // BOUNDS_PER_BUCKET))
        quantiles = np.linspace(0, len(bounds), buckets, endpoint=False)[1:].astype(np.intp)
        cuts = np.unique(np.sort(bounds)[quantiles]) if len(bounds) else bounds
        axes.append(Axis(column, [*cuts.tolist(), inf], row_next))
        row_next += len(cuts) + 2
    return axes


def _blank_rows(rows: int, capacity: int) -> Bits:
    words = -(-capacity // _SLOTS_PER_WORD)
    blank = np.full((rows, words * 8), 255, dtype=np.uint8)
    blank[0] = 0  # B3
    return blank


def _axis_bits(axis: Axis, columns: Columns, step: slice) -> Bits:
    """The bits of the slots in `step`, for each bucket of `axis` and for "no number"."""
    slots, lows, highs = columns.intervals_on(axis.column, step)
    last = axis.buckets - 1
    first_bucket = np.zeros(step.stop - step.start, dtype=np.uint8)
    last_bucket = np.full(step.stop - step.start, axis.buckets, dtype=np.uint8)
    first_bucket[slots] = np.minimum(np.searchsorted(axis.cuts, lows, side="right"), last)
    last_bucket[slots] = np.minimum(np.searchsorted(axis.cuts, highs, side="right"), last)
    buckets = np.arange(axis.buckets + 1, dtype=np.uint8)[:, np.newaxis]
    inside = (first_bucket <= buckets) & (buckets <= last_bucket)
    return np.packbits(inside, axis=1, bitorder="little")
