"""Rows of one table on their way: packed into bytes as they come, columns when there are many.

Why bytes: objects that wait are seen by Python's cyclic garbage collector, which then walks the
whole heap of a simulation again and again.  That cost more than all the rest.  Bytes are also
columns for NumPy and Arrow without another look at each cell.  A text is packed as its number
among the texts of its column, which are few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from operator import length_hint
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from godwit.trace.schema import COUNT, NUMBER, SMALL_COUNT, TEXT, YES_OR_NO

ROWS_PER_GROUP = 65_536

#: Stands for null in a column of counts, which are never negative, and of texts.
ABSENT = -1
#: How a cell is packed.
FORMATS = {TEXT: "i", NUMBER: "d", COUNT: "q", SMALL_COUNT: "i", YES_OR_NO: "?"}
DTYPES = {TEXT: "<i4", NUMBER: "<f8", COUNT: "<i8", SMALL_COUNT: "<i4", YES_OR_NO: "?"}


class Texts:
    """The texts of one column by number: the first is 0.  What is no text is null."""

    def __init__(self) -> None:
        #: For reading.  Plain: one that makes up what is missing takes twice as long.
        self.numbers: dict[object, int] = {}
        self._texts: list[str] = []

    def number(self, text: object) -> int:
        """The number of a text that may be new."""
        if text not in self.numbers:
            self.numbers[text] = len(self._texts) if isinstance(text, str) else ABSENT
            if isinstance(text, str):
                self._texts.append(text)
        return self.numbers[text]

    def take(self) -> list[str]:
        """The texts in the order of their numbers; from now on there are none."""
        texts, self._texts = self._texts, []
        self.numbers.clear()
        return texts


class Group(NamedTuple):
    """Some rows, taken together."""

    records: np.ndarray[Any, Any]
    texts: dict[str, list[str]]
    """For each column of texts, what the numbers in it stand for."""

    @property
    def rows(self) -> int:
        return len(self.records)

    def table(self, schema: pa.Schema) -> pa.Table:
        columns = [self._column(field) for field in schema]
        return pa.Table.from_arrays(columns, schema=as_written(schema))

    def _column(self, field: pa.Field) -> pa.Array:
        cells = np.ascontiguousarray(self.records[field.name])
        if field.type == YES_OR_NO:
            return _array(field.type, len(cells), None, _bits(cells))
        is_there = _bits(cells != ABSENT) if field.type in (TEXT, COUNT) else None
        if field.type != TEXT:
            return _array(field.type, len(cells), is_there, pa.py_buffer(cells))
        numbers = _array(pa.int32(), len(cells), is_there, pa.py_buffer(cells))
        return pa.DictionaryArray.from_arrays(numbers, _text_array(self.texts[field.name]))


def as_written(schema: pa.Schema) -> pa.Schema:
    """A column of texts is handed over as numbers, and what they stand for."""
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


class Rows:
    """Collects rows in a buffer, and has `write` take them when it is full.

    Either `add(row)`; or, for who is in a hurry, `pack(buffer, next(places), *cells)`, where a
    text is its number.
    """

    def __init__(self, schema: pa.Schema, write: Callable[[Group], None]) -> None:
        record = Struct("<" + "".join(FORMATS[field.type] for field in schema))
        self.pack = record.pack_into
        self.buffer = bytearray(ROWS_PER_GROUP * record.size)
        #: Where in the buffer rows go, one after the other, for ever.
        self.places = chain.from_iterable(self._rounds())
        self._texts = {field.name: Texts() for field in schema if field.type == TEXT}
        self._dtype = np.dtype([(field.name, DTYPES[field.type]) for field in schema])
        self._columns = schema.names
        self._write = write
        self._taken = 0
        self._start_round()

    def _start_round(self) -> None:
        self._taken_in_round = 0
        self._places_left = iter(range(0, len(self.buffer), self._dtype.itemsize))

    def _rounds(self) -> Iterator[Iterator[int]]:
        while True:
            yield self._places_left
            self.flush()
            self._start_round()

    @property
    def count(self) -> int:
        """Rows so far."""
        return self._taken + self._collected

    @property
    def _collected(self) -> int:
        return self._packed - self._taken_in_round

    @property
    def _packed(self) -> int:
        """In this round."""
        return len(self.buffer) // self._dtype.itemsize - length_hint(self._places_left)

    def add(self, row: Sequence[Any]) -> None:
        """A cell for each column, in their order."""
        cells = list(zip(self._columns, row, strict=True))
        place, texts = next(self.places), self._texts
        numbered = (texts[of].number(cell) if of in texts else cell for of, cell in cells)
        self.pack(self.buffer, place, *numbered)

    def numbers(self, column: str) -> dict[object, int]:
        """The numbers of the texts in a column, as far as they are known."""
        return self._texts[column].numbers

    def learn(self, texts: Mapping[str, object]) -> None:
        """Give numbers to texts of these columns."""
        for column, text in texts.items():
            self._texts[column].number(text)

    def flush(self) -> None:
        """Have written what there is."""
        self._write(self.take())

    def take(self) -> Group:
        """All there is; from now on there is nothing."""
        self._taken += self._collected
        return self._take()

    def _take(self) -> Group:
        records = np.frombuffer(self.buffer, self._dtype)[self._taken_in_round : self._packed]
        self._taken_in_round = self._packed
        texts = {column: texts.take() for column, texts in self._texts.items()}
        return Group(records.copy(), texts)


class SpreadRows(Rows):
    """Many rows at a time that differ in one column of texts only.

    In its place, what is packed has how many there are; the texts themselves are in `spread`.
    """

    def __init__(
        self, schema: pa.Schema, write: Callable[[Group], None], *, differ_in: str
    ) -> None:
        super().__init__(schema, write)
        self.spread: list[str] = []
        self._differ_in = differ_in

    @property
    def _collected(self) -> int:
        return len(self.spread)

    def _take(self) -> Group:
        once, texts = super()._take()
        numbers = {text: number for number, text in enumerate(dict.fromkeys(self.spread))}
        records = np.repeat(once, once[self._differ_in])
        in_order = map(numbers.__getitem__, self.spread)
        records[self._differ_in] = np.fromiter(in_order, "<i4", len(self.spread))
        self.spread.clear()
        return Group(records, {**texts, self._differ_in: list(numbers)})
