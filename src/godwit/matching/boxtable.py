"""A table of many boxes: bitsets find the candidates, columns decide them.

    add --> pending --> slot in Columns (bounds) and Bitsets (candidates) --> match

Boxes wait in `pending` until the next match or until there are many, because NumPy writes a
thousand boxes in the time of twenty single ones.  Removed boxes free their slots at once.

Bitsets are cut at quantiles of the bounds at that time, so they are rebuilt when the number of
boxes has changed by a factor, and when most boxes have been replaced: the new ones may have other
bounds and attributes.  That costs a few microseconds for each box over its lifetime.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from godwit.content.regions import Constraint, Interval
from godwit.content.values import Record
from godwit.matching.bitsets import Bitsets, choose_axes
from godwit.matching.columns import INTERVALS_MAX, Columns, Slots
from godwit.matching.scan import passes
from godwit.matching.shapes import Box, Checks

K = TypeVar("K", bound=Hashable)

PENDING_MAX = 1024
#: So many pending boxes or more are written faster by NumPy than one by one.
BULK_MIN = 16
CAPACITY_GROWTH = 1.25
CAPACITY_MIN = 64
#: Rebuild when there are so many times more boxes than at the last rebuild, or fewer,
REBUILD_FACTOR = 4
#: ... and when so many times as many boxes were added as there are.
REPLACED_FACTOR = 2


class BoxTable(Generic[K]):
    def __init__(self, boxes: dict[K, Box]) -> None:
        self._slots: dict[K, int] = {}
        self._checks: dict[int, Checks] = {}
        self._free: list[int] = []
        self._used = 0  # Slots from this number on were never used.
        self._built_size = 0
        self._written = 0  # Boxes added since the last rebuild.
        self._pending = dict(boxes)
        self._columns = Columns(0, 1)
        self._bitsets = Bitsets(0, [])
        self._keys = np.empty(0, dtype=np.object_)

    def __len__(self) -> int:
        return len(self._slots) + len(self._pending)

    def add(self, key: K, box: Box) -> None:
        self._pending[key] = box
        if len(self._pending) >= PENDING_MAX:
            self._flush()

    def remove(self, key: K) -> None:
        if self._pending.pop(key, None) is not None:
            return
        slot = self._slots.pop(key)
        self._bitsets.remove(slot, self._columns.intervals(slot))
        self._columns.erase(slot)
        self._checks.pop(slot, None)
        self._keys[slot] = None
        self._free.append(slot)
        if self._used > CAPACITY_MIN and self._used > REBUILD_FACTOR * len(self._slots):
            self._rebuild()

    def match(self, record: Record) -> list[K]:
        if self._pending:
            self._flush()
        point = self._columns.point(record)
        slots = self._columns.holding(self._bitsets.candidates(point), point)
        if self._checks:
            slots = self._checked(slots, record)
        keys: list[K] = self._keys.take(slots).tolist()
        return keys

    def _checked(self, slots: Slots, record: Record) -> Slots:
        checks = self._checks
        return np.array(
            [slot for slot in slots.tolist() if slot not in checks or passes(checks[slot], record)],
            dtype=np.intp,
        )

    def _flush(self) -> None:
        """Move the pending boxes to slots."""
        pending, self._pending = self._pending, {}
        self._make_room(pending)
        start, reuses_slots = self._used, bool(self._free)
        slots = [self._write(key, box) for key, box in pending.items()]
        if len(
            self._slots
        ) > REBUILD_FACTOR * self._built_size or self._written > REPLACED_FACTOR * max(
            len(self._slots), CAPACITY_MIN
        ):
            self._rebuild()
        elif len(slots) >= BULK_MIN and not reuses_slots:
            self._bitsets.add_range(start, self._used, self._columns)
        else:
            for slot in slots:
                self._bitsets.add(slot, self._columns.intervals(slot))

    def _write(self, key: K, box: Box) -> int:
        """Give `box` a slot, and write everything but its bits."""
        if self._free:
            slot = self._free.pop()
        else:
            slot = self._used
            self._used += 1
        self._written += 1
        self._slots[key] = slot
        self._keys[slot] = key
        self._columns.write(slot, box.intervals[:INTERVALS_MAX])
        checks = (*box.checks, *map(_as_check, box.intervals[INTERVALS_MAX:]))
        if checks:
            self._checks[slot] = checks
        return slot

    def _make_room(self, boxes: dict[K, Box]) -> None:
        """Grow, if necessary, so that there is a slot for each of `boxes`."""
        needed = self._used + max(0, len(boxes) - len(self._free))
        width = max(min(len(box.intervals), INTERVALS_MAX) for box in boxes.values())
        if needed > len(self._keys) or width > self._columns.width:
            capacity = max(len(self._keys), _capacity(needed))
            kept = slice(0, self._used)
            self._columns = self._columns.resized(kept, capacity, max(width, self._columns.width))
            self._keys = _resized(self._keys[kept], capacity)
            self._bitsets.grow(capacity)

    def _rebuild(self) -> None:
        """Close the gaps between used slots, and cut the axes again."""
        kept = np.fromiter(self._slots.values(), dtype=np.intp, count=len(self._slots))
        capacity = _capacity(len(kept))
        self._columns = self._columns.resized(kept, capacity, self._columns.width)
        self._columns.renumber()
        self._keys = _resized(self._keys[kept], capacity)
        new_slots = dict(zip(kept.tolist(), range(len(kept)), strict=True))
        self._checks = {new_slots[slot]: checks for slot, checks in self._checks.items()}
        self._slots = {key: new_slots[slot] for key, slot in self._slots.items()}
        self._free = []
        self._used = self._built_size = len(kept)
        self._written = 0
        self._bitsets = Bitsets(capacity, choose_axes(self._columns, len(kept)))
        self._bitsets.add_range(0, len(kept), self._columns)


def _as_check(interval: tuple[str, float, float]) -> tuple[str, Constraint]:
    attribute, low, high = interval
    return attribute, Constraint(numbers=Interval(low, False, high, False))


def _capacity(boxes: int) -> int:
    """Room for `boxes` boxes and some spare, in whole words of bits."""
    return max(CAPACITY_MIN, -(-int(boxes * CAPACITY_GROWTH) // 64) * 64)


def _resized(keys: NDArray[np.object_], capacity: int) -> NDArray[np.object_]:
    resized = np.empty(capacity, dtype=np.object_)
    resized[: len(keys)] = keys
    return resized
