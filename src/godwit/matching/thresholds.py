"""Runs: filters of a group that differ in one bound, sorted by that bound.

The filters `volume > t` that a quote matches are those with t below its volume: a prefix of the
run, found by bisection.  The result consists of blocks, and only the block that the bound cuts
through is copied, so it hardly matters whether ten or ten thousand filters match.

    bounds   [-3, 0, 1] [4, 4, 7, 9] [9, 12]    in blocks of at most BLOCK_SIZE_MAX
    keys     [ k, f, b] [a, j, m, c] [d,  e]

H1  A list of keys that is part of a run never changes: a change replaces it by another list.  So
    results may keep lists of keys, and a change costs one block, not the run.
H2  A run has no empty block.
H3  Bounds are Python numbers: large integers and floats compare exactly.

Values of records are finite, as `values.check_record` requires; bisection cannot handle NaN.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Hashable
from typing import Generic, TypeVar

from godwit.content.predicates import Operator
from godwit.content.values import Number, Record
from godwit.matching.groups import FEW_MAX, Found, Group, Places, Shelf, Tag, note_place
from godwit.matching.scan import Boxed, boxed, is_number
from godwit.matching.shapes import Box, Threshold, box_of

K = TypeVar("K", bound=Hashable)

# A change copies one block and a match half of one, at about 2 ns a key; smaller blocks would make
# long results slower.
BLOCK_SIZE_MAX = 256


class Block(Generic[K]):
    """Consecutive filters of a run: the place of their keys."""

    __slots__ = ("bounds", "keys", "shelf")

    def __init__(self, shelf: BoundRun[K], bounds: list[Number], keys: list[K]) -> None:
        self.shelf = shelf
        self.bounds = bounds
        self.keys = keys

    def insert(self, position: int, bound: Number, key: K) -> None:
        keys = self.keys.copy()  # H1
        keys.insert(position, key)
        self.keys = keys
        self.bounds.insert(position, bound)

    def remove(self, key: K, places: Places[K]) -> None:
        position = self.keys.index(key)
        keys = self.keys.copy()  # H1
        del keys[position], self.bounds[position]
        self.keys = keys
        self.shelf.shrink(self, places)


class BoundRun(Shelf[K]):
    """Filters sorted by their bounds."""

    __slots__ = ("_blocks", "_key_lists", "_lowest")

    def __init__(self, group: Group[K], tag: Tag) -> None:
        super().__init__(group, tag)
        # In parallel: each block, its keys, its first bound.
        self._blocks: list[Block[K]] = []
        self._key_lists: list[list[K]] = []
        self._lowest: list[Number] = []

    @property
    def is_empty(self) -> bool:
        return not self._blocks

    def add(self, key: K, bound: Number, places: Places[K]) -> None:
        """File `key` after equal bounds, and note its place."""
        number = max(0, bisect_right(self._lowest, bound) - 1)
        if not self._blocks:
            self._insert_block(0, Block(self, [bound], [key]))
        elif len(self._blocks[number].keys) >= BLOCK_SIZE_MAX:
            self._split(number, places)
            self.add(key, bound, places)
            return
        else:
            block = self._blocks[number]
            block.insert(bisect_right(block.bounds, bound), bound, key)
            self._key_lists[number] = block.keys
            self._lowest[number] = block.bounds[0]
        note_place(places, key, self._blocks[number])

    def boxed(self) -> list[Boxed[K]] | None:
        if len(self._blocks) != 1 or len(self._blocks[0].keys) > FEW_MAX:
            return None
        (block,) = self._blocks
        bounds_of = zip(block.keys, block.bounds, strict=True)
        return [boxed(key, self._box(bound)) for key, bound in bounds_of]

    @abstractmethod
    def _box(self, bound: Number) -> Box:
        """What remains to be decided by a filter with this bound."""

    def shrink(self, block: Block[K], places: Places[K]) -> None:
        """Update after a key has left `block`; join it with a neighbour if both are small."""
        number = self._blocks.index(block)
        if not block.keys:
            self._delete_block(number)  # H2
            return
        self._key_lists[number] = block.keys
        self._lowest[number] = block.bounds[0]
        for first in (number, number - 1):
            pair = self._blocks[first : first + 2] if first >= 0 else []
            # At most half full, so that the next few changes do not split it again.
            if len(pair) == 2 and sum(len(b.keys) for b in pair) <= BLOCK_SIZE_MAX // 2:
                self._join(first, places)
                return

    def _join(self, number: int, places: Places[K]) -> None:
        block, upper = self._blocks[number : number + 2]
        for key in upper.keys:
            note_place(places, key, block, upper)
        block.bounds += upper.bounds
        block.keys = self._key_lists[number] = block.keys + upper.keys  # H1
        self._delete_block(number + 1)

    def _split(self, number: int, places: Places[K]) -> None:
        """Move the upper part of a full block to a new block after it.

        The last block moves a single key: so keys that are added in ascending order, such as those
        of equal filters, fill their blocks.
        """
        block = self._blocks[number]
        is_last = number == len(self._blocks) - 1
        cut = BLOCK_SIZE_MAX - 1 if is_last else BLOCK_SIZE_MAX // 2
        upper = Block(self, block.bounds[cut:], block.keys[cut:])
        for key in upper.keys:
            note_place(places, key, upper, block)
        del block.bounds[cut:]
        block.keys = self._key_lists[number] = block.keys[:cut]
        self._insert_block(number + 1, upper)

    def _insert_block(self, number: int, block: Block[K]) -> None:
        self._blocks.insert(number, block)
        self._key_lists.insert(number, block.keys)
        self._lowest.insert(number, block.bounds[0])

    def _delete_block(self, number: int) -> None:
        del self._blocks[number], self._key_lists[number], self._lowest[number]


class Everyone(BoundRun[K]):
    """Filters of which nothing remains to be decided: one common bound, and all match."""

    __slots__ = ()

    def collect(self, record: Record, found: Found[K]) -> None:
        found += self._key_lists

    def _box(self, bound: Number) -> Box:
        return Box()


class Thresholds(BoundRun[K]):
    """Filters that compare one attribute with different bounds, by the same operator."""

    __slots__ = ("_attribute", "_cut", "_operator", "_takes_prefix")

    def __init__(self, group: Group[K], attribute: str, operator: Operator) -> None:
        super().__init__(group, (attribute, operator))
        self._attribute = attribute
        self._operator = operator
        # value > bound and value >= bound hold for low bounds, the others for high ones.  The cut
        # leaves bounds that equal the value on the side that the operator needs.
        self._takes_prefix = operator in (Operator.ABOVE, Operator.AT_LEAST)
        is_left = operator in (Operator.ABOVE, Operator.AT_MOST)
        self._cut = bisect_left if is_left else bisect_right

    def collect(self, record: Record, found: Found[K]) -> None:
        value = record.get(self._attribute)
        if not is_number(value):
            return
        # Blocks before `number` are wholly before the cut, later blocks wholly after it.
        number = self._cut(self._lowest, value) - 1
        if number < 0:
            if not self._takes_prefix:
                found += self._key_lists
            return
        block = self._blocks[number]
        position = self._cut(block.bounds, value)
        if self._takes_prefix:
            if number:
                found += self._key_lists[:number]
            found.append(block.keys[:position])  # Not empty: the first bound is before the cut.
            return
        if position < len(block.keys):
            found.append(block.keys[position:])
        if number + 1 < len(self._blocks):
            found += self._key_lists[number + 1 :]

    def _box(self, bound: Number) -> Box:
        return box_of(Threshold(self._attribute, self._operator, bound))
