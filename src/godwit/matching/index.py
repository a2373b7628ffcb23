"""The matching index: which of many filters match a record.

    filter --> shape --> schema --> group --> shelf          add
    record ------------> schema --> group --> shelf --> keys   match

Filters are filed by the attributes that they fix to a value (schema), by those values (group), and
by what remains to be decided (shelf).  A record has at most one group in each schema, so a match
costs a look-up for each schema, plus for each shelf of the groups found

    nothing remains         nothing         thresholds.py
    one bound               one bisection   thresholds.py
    several intervals       one by one while few, then bitsets    boxes.py, bitsets.py
    string tests, and others                one by one            boxes.py

The result is exact: the same as calling `matches` of every filter.  Records and filters must obey
the rules of the language (`values.check_record`).

I1  A Matches never changes, even if the index does.
I2  A filter is filed at most once where a record finds it, so no key is reported twice.
I3  No empty shelf, group or schema is kept.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import chain, product
from typing import Generic, TypeVar

from godwit.content.filters import Filter
from godwit.content.values import Record
from godwit.errors import UsageError
from godwit.matching.boxes import Boxes, Scan
from godwit.matching.groups import Found, Group, KeyPlace, Places, Schema, Signature
from godwit.matching.scan import scan
from godwit.matching.shapes import Residual, Shape, Threshold, shape_of
from godwit.matching.thresholds import Everyone, Thresholds

K = TypeVar("K", bound=Hashable)


class Matches(Generic[K]):
    """The keys of the filters that match a record, each once, in no particular order.

    Counting them is much cheaper than iterating: most lists of keys belong to the index.
    """

    __slots__ = ("_found",)

    def __init__(self, found: Found[K]) -> None:
        self._found = found

    def __len__(self) -> int:
        return sum(map(len, self._found))

    def __bool__(self) -> bool:
        return bool(self._found)

    def __iter__(self) -> Iterator[K]:
        return chain.from_iterable(self._found)

    def __repr__(self) -> str:
        return f"Matches({list(self)})"


class MatchingIndex(Generic[K]):
    """Filters under keys; `match` gives the keys of those that match a record."""

    __slots__ = ("_places", "_schemas")

    def __init__(self) -> None:
        self._places: Places[K] = {}
        self._schemas: dict[Signature, Schema[K]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: K) -> bool:
        return key in self._places

    def add(self, key: K, filter: Filter) -> None:
        if key in self._places:
            raise UsageError(f"{key!r} already has a filter; remove it first, or use another key")
        if not filter.is_satisfiable:
            self._places[key] = []
            return
        shape = shape_of(filter)
        schema = self._schema(shape)
        combinations = list(product(*shape.choices))
        if len(combinations) > 1:
            self._places[key] = []
        for values in combinations:
            self._file(key, schema.group(values, shape.affix), shape.residual)

    def remove(self, key: K) -> None:
        if key not in self._places:
            raise UsageError(f"{key!r} has no filter here, so it cannot be removed")
        place = self._places.pop(key)
        for one in place if isinstance(place, list) else (place,):
            one.remove(key, self._places)
            self._tidy(one)

    def match(self, record: Record) -> Matches[K]:
        return Matches(self.key_lists(record))

    def key_lists(self, record: Record) -> Found[K]:
        """The keys of `match` in the index's own lists: do not change them."""
        found: Found[K] = []
        get = record.get
        for schema in self._schemas.values():
            # Most schemas have one attribute or two; calling `find` would take longer than it does.
            if (only := schema.only) is not None:
                group = schema.groups.get((get(only),))
            elif (pair := schema.pair) is not None:
                first, second = pair
                group = schema.groups.get((get(first), get(second)))
            else:
                group = schema.find(record)
            if group is None:
                continue
            few = group.few
            if few is None:
                few = group.build_few()
            # Groups in which nothing remains to be decided are the most common, and the fastest.
            if group.sure:
                found.append(group.sure)
            elif few:
                if matching := scan(few, record):
                    found.append(matching)
            else:
                for shelf in group.shelves:
                    shelf.collect(record, found)
        return found

    def _schema(self, shape: Shape) -> Schema[K]:
        affix = shape.affix
        end = None if affix is None else (affix.attribute, affix.operator, len(affix.text))
        signature: Signature = (shape.attributes, end)
        schema = self._schemas.get(signature)
        if schema is None:
            schema = self._schemas[signature] = Schema(signature)
        return schema

    def _file(self, key: K, group: Group[K], residual: Residual) -> None:
        """Put `key` on the shelf for `residual`, which is created if necessary."""
        group.few = None
        # No `match` statement: it would cost as much as the filing itself.
        if residual is None:
            everyone = group.shelf("everyone")
            if everyone is None:
                everyone = Everyone(group, "everyone")
                group.shelves.append(everyone)
            assert isinstance(everyone, Everyone)
            everyone.add(key, 0, self._places)
        elif isinstance(residual, Threshold):
            attribute, operator, bound = residual
            run = group.shelf((attribute, operator))
            if run is None:
                run = Thresholds(group, attribute, operator)
                group.shelves.append(run)
            assert isinstance(run, Thresholds)
            run.add(key, bound, self._places)
        else:
            tag = "boxes" if residual.intervals else "others"
            boxes = group.shelf(tag)
            if boxes is None:
                boxes = Boxes(group, tag) if residual.intervals else Scan(group, tag)
                group.shelves.append(boxes)
            assert isinstance(boxes, Scan)
            boxes.add(key, residual, self._places)

    def _tidy(self, place: KeyPlace[K]) -> None:
        """Remove what is empty after a key has left `place` (I3)."""
        shelf = place.shelf
        group = shelf.group
        group.few = None
        if not shelf.is_empty:
            return
        group.shelves.remove(shelf)
        if group.shelves:
            return
        schema = group.schema
        del schema.groups[group.values]
        if not schema.groups:
            del self._schemas[schema.signature]
