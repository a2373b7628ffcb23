"""Boxes: filters with several intervals or tests, scanned while few, in a table when many.

Up to SCAN_MAX boxes are tested one by one in plain Python, which is faster than calling NumPy; more
go to a table of bitsets.  Filters without an interval (only string tests, exclusions, long lists)
have nothing to put into bitsets, and are always tested one by one.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

from godwit.content.values import Record
from godwit.matching.boxtable import BoxTable
from godwit.matching.groups import FEW_MAX, Found, Group, Places, Shelf, Tag, note_place
from godwit.matching.scan import Boxed, boxed, scan
from godwit.matching.shapes import Box

K = TypeVar("K", bound=Hashable)

#: Measured: with more boxes, a table is faster.
SCAN_MAX = 64


class Scan(Shelf[K]):
    """Boxes that are tested one by one."""

    __slots__ = ("_boxes",)

    def __init__(self, group: Group[K], tag: Tag) -> None:
        super().__init__(group, tag)
        self._boxes: dict[K, Boxed[K]] = {}

    @property
    def shelf(self) -> Scan[K]:
        return self

    @property
    def is_empty(self) -> bool:
        return not self._boxes

    def add(self, key: K, box: Box, places: Places[K]) -> None:
        self._boxes[key] = boxed(key, box)
        note_place(places, key, self)

    def remove(self, key: K, places: Places[K]) -> None:
        del self._boxes[key]

    def collect(self, record: Record, found: Found[K]) -> None:
        if matching := scan(self._boxes.values(), record):
            found.append(matching)

    def boxed(self) -> list[Boxed[K]] | None:
        return list(self._boxes.values()) if len(self._boxes) <= FEW_MAX else None


class Boxes(Scan[K]):
    """Boxes with intervals: tested one by one while they are few."""

    __slots__ = ("_table",)

    def __init__(self, group: Group[K], tag: Tag) -> None:
        super().__init__(group, tag)
        self._table: BoxTable[K] | None = None

    @property
    def is_empty(self) -> bool:
        return not (self._boxes if self._table is None else self._table)

    def add(self, key: K, box: Box, places: Places[K]) -> None:
        if self._table is not None:
            self._table.add(key, box)
            note_place(places, key, self)
            return
        super().add(key, box, places)
        if len(self._boxes) > SCAN_MAX:
            self._table = BoxTable(
                {key: Box(intervals, checks) for key, intervals, checks in self._boxes.values()}
            )
            self._boxes = {}

    def remove(self, key: K, places: Places[K]) -> None:
        if self._table is None:
            super().remove(key, places)
        else:
            self._table.remove(key)

    def collect(self, record: Record, found: Found[K]) -> None:
        if self._table is None:
            Scan.collect(self, record, found)
        elif matching := self._table.match(record):
            found.append(matching)

    def boxed(self) -> list[Boxed[K]] | None:
        return super().boxed() if self._table is None else None
