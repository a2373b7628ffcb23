"""Rows of one table on their way: packed into bytes as they come, columns when there are many.

Why bytes: objects that wait are seen by Python's cyclic garbage collector, which then walks the
whole heap of a simulation again and again.  That cost more than all the rest.  Bytes are also
columns for NumPy and Arrow without another look at each cell.  A text is packed as its number
among the texts of its column, which are few.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from godwit.trace.schema import COUNT, NUMBER, SMALL_COUNT, TEXT, YES_OR_NO

ROWS_PER_GROUP = 65_536
#: So many rows wait as they were put, before they are appended to the others.
ROWS_PER_BATCH = 512

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
        # From buffers, because pa.array() of NumPy's arrays loads pandas, for half a second.
        cells = np.ascontiguousarray(self.records[field.name])
        if field.type == YES_OR_NO:
            return _array(field.type, len(cells), None, _bits(cells))
        is_there = _bits(cells != ABSENT) if field.type in (TEXT, COUNT) else None
        if field.type != TEXT:
            return _array(field.type, len(cells), is_there, pa.py_buffer(cells))
        numbers = _array(pa.int32(), len(cells), is_there, pa.py_buffer(cells))
        texts = pa.array(self.texts[field.name], TEXT)
        return pa.DictionaryArray.from_arrays(numbers, texts, safe=False)


def as_written(schema: pa.Schema) -> pa.Schema:
    """A column of texts is handed over as numbers, and what they stand for."""
    numbered = pa.dictionary(pa.int32(), TEXT)
    return pa.schema([f.with_type(numbered) if f.type == TEXT else f for f in schema])


def _array(kind: pa.DataType, rows: int, is_there: pa.Buffer | None, cells: pa.Buffer) -> pa.Array:
    return pa.Array.from_buffers(kind, rows, [is_there, cells])


def _bits(flags: np.ndarray[Any, Any]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


class Rows:
    """Collects rows, and has `write` take each full group of them.

    Either `add(row)`; or in steps, for who is in a hurry: `put(pack(*cells))`, where a text is
    its number, and `gather()` when `ROWS_PER_BATCH` are fresh.
    """

    def __init__(self, schema: pa.Schema, write: Callable[[Group], None]) -> None:
        self.pack = Struct("<" + "".join(FORMATS[field.type] for field in schema)).pack
        #: Packed, and not yet gathered.
        self.fresh: list[bytes] = []
        self.put = self.fresh.append
        self._texts = {field.name: Texts() for field in schema if field.type == TEXT}
        self._dtype = np.dtype([(field.name, DTYPES[field.type]) for field in schema])
        self._columns = schema.names
        self._packed = bytearray()
        self._write = write
        self._taken = 0

    @property
    def count(self) -> int:
        """Rows so far."""
        return self._taken + self._collected

    @property
    def _collected(self) -> int:
        return len(self.fresh) + len(self._packed) // self._dtype.itemsize

    def add(self, row: Sequence[Any]) -> None:
        """A cell for each column, in their order."""
        texts = self._texts
        cells = zip(self._columns, row, strict=True)
        self.put(self.pack(*(texts[of].number(c) if of in texts else c for of, c in cells)))
        if len(self.fresh) >= ROWS_PER_BATCH:
            self.gather()

    def numbers(self, *columns: str) -> Iterator[dict[object, int]]:
        """For each column the numbers of its texts, as far as they are known."""
        return (self._texts[column].numbers for column in columns)

    def learn(self, texts: Mapping[str, object]) -> None:
        """Give numbers to texts of these columns."""
        for column, text in texts.items():
            self._texts[column].number(text)

    def gather(self) -> None:
        """Pack what is fresh closer together, and have it written if there is enough."""
        self._gather()
        if self._collected >= ROWS_PER_GROUP:
            self._write(self.take())

    def take(self) -> Group:
        """All there is; from now on there is nothing."""
        self._gather()
        self._taken += self._collected
        return self._take()

    def _gather(self) -> None:
        self._packed += b"".join(self.fresh)
        self.fresh.clear()

    def _take(self) -> Group:
        packed, self._packed = self._packed, bytearray()
        texts = {column: texts.take() for column, texts in self._texts.items()}
        return Group(np.frombuffer(packed, self._dtype), texts)


class SpreadRows(Rows):
    """Many rows at a time that differ in one column of texts only.

    In its place, what is put has how many there are; the texts themselves are in `fresh_texts`.
    """

    def __init__(
        self, schema: pa.Schema, write: Callable[[Group], None], *, differ_in: str
    ) -> None:
        super().__init__(schema, write)
        self._differ_in = differ_in
        self.fresh_texts: list[str] = []
        self._numbers = array("i")

    @property
    def _collected(self) -> int:
        return len(self.fresh_texts) + len(self._numbers)

    def _gather(self) -> None:
        super()._gather()
        texts, fresh = self._texts[self._differ_in], self.fresh_texts
        try:
            numbers = [*map(texts.numbers.__getitem__, fresh)]
        except KeyError:
            numbers = [texts.number(text) for text in fresh]
        self._numbers += array("i", numbers)
        fresh.clear()

    def _take(self) -> Group:
        once, texts = super()._take()
        records = np.repeat(once, once[self._differ_in])
        records[self._differ_in] = self._numbers
        self._numbers = array("i")
        return Group(records, texts)
