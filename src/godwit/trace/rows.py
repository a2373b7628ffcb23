"""Collects the rows of one table: first as cells in a list, then as columns.

Appending to a list of cells is the only work while messages are handled, and it is cheap; so is
converting thousands of cells at a time.  Cells are numbers and texts, never messages: those would
stay alive with all they refer to, and Python's cyclic garbage collector would walk the whole heap
of a simulation again and again.

A text is replaced by its number among the texts of its column, which are few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from struct import pack
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from godwit.trace.schema import COUNT, NUMBER, SMALL_COUNT, TEXT, YES_OR_NO

#: Rows that are written together, or slightly more.
ROWS_PER_GROUP = 65_536
#: Rows that are converted to columns together.  This blocks for a millisecond or two.
ROWS_PER_PACK = 2_048

#: Stands for null in a column of counts, which are never negative, and of texts.
ABSENT = -1
#: How cells become a column, in the language of `struct` and of NumPy.
FORMATS = {TEXT: "i", NUMBER: "d", COUNT: "q", SMALL_COUNT: "i", YES_OR_NO: "?"}

Column: TypeAlias = np.ndarray[Any, Any]


class Texts(dict[object, int]):
    """The texts of one column with their numbers, from 0.  Other values are null."""

    def __init__(self) -> None:
        super().__init__()
        self.in_order: list[str] = []

    def __missing__(self, text: object) -> int:
        number = ABSENT
        if isinstance(text, str):
            number = len(self.in_order)
            self.in_order.append(text)
        self[text] = number
        return number

    def column(self, texts: Sequence[object]) -> Column:
        return _column(FORMATS[TEXT], list(map(self.__getitem__, texts)))


def _column(format: str, cells: Sequence[float]) -> Column:
    # Twice as fast as NumPy's own conversions.
    return np.frombuffer(pack(f"{len(cells)}{format}", *cells), format)


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows that are written together."""

    packs: list[list[Column]]
    """The rows in several parts, each as columns."""

    texts: dict[str, list[str]]
    """For each column of texts, the texts by number."""

    @property
    def rows(self) -> int:
        return sum(len(columns[0]) for columns in self.packs)

    def table(self, schema: pa.Schema) -> pa.Table:
        columns = zip(schema, self._columns(), strict=True)
        arrays = [self._array(field, cells) for field, cells in columns]
        return pa.Table.from_arrays(arrays, schema=as_written(schema))

    def _columns(self) -> list[Column]:
        return list(map(np.concatenate, zip(*self.packs, strict=True)))

    def _array(self, field: pa.Field, cells: Column) -> pa.Array:
        if field.type == YES_OR_NO:
            return _array(field.type, len(cells), None, _bits(cells))
        is_there = _bits(cells != ABSENT) if field.type in (TEXT, COUNT) else None
        if field.type != TEXT:
            return _array(field.type, len(cells), is_there, pa.py_buffer(cells))
        numbers = _array(pa.int32(), len(cells), is_there, pa.py_buffer(cells))
        return pa.DictionaryArray.from_arrays(numbers, _text_array(self.texts[field.name]))


@dataclass(frozen=True, slots=True)
class SpreadGroup(RowGroup):
    """Rows that each stand for several rows, which differ in one column only."""

    differ_in: int
    """The index of that column; in its place is the number of rows."""

    spread: list[Column]

    @property
    def rows(self) -> int:
        return sum(map(len, self.spread))

    def _columns(self) -> list[Column]:
        once = super(SpreadGroup, self)._columns()
        columns = [np.repeat(column, once[self.differ_in]) for column in once]
        columns[self.differ_in] = np.concatenate(self.spread)
        return columns


def as_written(schema: pa.Schema) -> pa.Schema:
    """The schema with columns of texts as dictionaries."""
    numbered = pa.dictionary(pa.int32(), TEXT)
    return pa.schema([f.with_type(numbered) if f.type == TEXT else f for f in schema])


# From buffers, because pa.array() loads pandas, which takes half a second in every broker.


def _array(kind: pa.DataType, rows: int, is_there: pa.Buffer | None, cells: pa.Buffer) -> pa.Array:
    return pa.Array.from_buffers(kind, rows, [is_there, cells])


def _text_array(texts: Sequence[str]) -> pa.Array:
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype="<i4")
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(TEXT, len(texts), buffers)


def _bits(flags: np.ndarray[Any, Any]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def _nothing() -> None:
    """No rows are pending."""


class Rows:
    """Collects rows, and passes them to `write` in groups.

    Use `add(row)`; or, faster, `cells.extend(row)`, and `pack()` as soon as there are `enough`
    cells.
    """

    def __init__(self, schema: pa.Schema, write: Callable[[RowGroup], None]) -> None:
        #: The cells of the latest rows, row by row.
        self.cells: list[Any] = []
        self.enough = ROWS_PER_PACK * len(schema)
        self._formats = [FORMATS[field.type] for field in schema]
        self._text_columns = {n: field.name for n, field in enumerate(schema) if field.type == TEXT}
        #: Called before rows are counted or taken; a caller that adds them in batches sets it.
        self.ask_for_more: Callable[[], None] = _nothing
        self._write = write
        self._taken = 0
        self._start_group()

    def _start_group(self) -> None:
        self._packs: list[list[Column]] = []
        self._texts = {name: Texts() for name in self._text_columns.values()}

    @property
    def count(self) -> int:
        """Rows so far."""
        self.ask_for_more()
        return self._taken + self._collected

    @property
    def _collected(self) -> int:
        return self._packed + len(self.cells) // len(self._formats)

    @property
    def _packed(self) -> int:
        return sum(len(columns[0]) for columns in self._packs)

    def add(self, row: Sequence[Any]) -> None:
        """A cell for each column, in their order."""
        if len(row) != len(self._formats):
            raise ValueError(f"{len(row)} cells for {len(self._formats)} columns")
        self.cells.extend(row)
        if len(self.cells) >= self.enough:
            self.pack()

    def pack(self) -> None:
        """Convert the cells to columns, and write them if there are enough for a group."""
        if self.cells:
            self._packs.append(self._columns())
            self.cells.clear()
        if self._packed >= ROWS_PER_GROUP:
            self._write(self._take())

    def take(self) -> RowGroup:
        """Remove and return all rows."""
        self.ask_for_more()
        self.pack()
        return self._take()

    def _take(self) -> RowGroup:
        self._taken += self._packed
        group = self._group({name: texts.in_order for name, texts in self._texts.items()})
        self._start_group()
        return group

    def _group(self, texts: dict[str, list[str]]) -> RowGroup:
        return RowGroup(self._packs, texts)

    def _columns(self) -> list[Column]:
        columns = []
        for number, format in enumerate(self._formats):
            cells = self.cells[number :: len(self._formats)]
            if number in self._text_columns:
                columns.append(self._texts[self._text_columns[number]].column(cells))
            else:
                columns.append(_column(format, cells))
        return columns


class SpreadRows(Rows):
    """Several rows at a time that differ in one column of texts only.

    In place of that column, a row has their number; the texts are in `spread`, which should be
    packed before it has more than `ROWS_PER_GROUP` of them.
    """

    def __init__(
        self, schema: pa.Schema, write: Callable[[RowGroup], None], *, differ_in: str
    ) -> None:
        self.spread: list[str] = []
        self._differ_in = differ_in
        self._place = schema.get_field_index(differ_in)
        super().__init__(schema.set(self._place, pa.field(differ_in, COUNT)), write)

    def _start_group(self) -> None:
        super()._start_group()
        self._texts[self._differ_in] = Texts()
        self._spread_packs: list[Column] = []

    @property
    def _collected(self) -> int:
        return self._packed + len(self.spread)

    @property
    def _packed(self) -> int:
        return sum(map(len, self._spread_packs))

    def _group(self, texts: dict[str, list[str]]) -> RowGroup:
        return SpreadGroup(self._packs, texts, self._place, self._spread_packs)

    def _columns(self) -> list[Column]:
        self._spread_packs.append(self._texts[self._differ_in].column(self.spread))
        self.spread.clear()
        return super()._columns()
