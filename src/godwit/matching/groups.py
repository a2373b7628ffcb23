"""Where filters are filed: schemas, the groups in a schema, the shelves in a group.

    Schema  the attributes that filters fix     {class, symbol}
    Group   ... and the values they fix         {class: STOCK, symbol: IBM}
    Shelf   ... and one shape of what remains   volume > t

A record finds its group in each schema by one look-up, and is then tested by the shelves of that
group.  In practice there are few schemas, however many filters: users combine the same attributes.

A group of few filters is faster to test as one list than shelf by shelf.  The list is built when a
record needs it, and discarded by the next change.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Generic, Protocol, TypeAlias, TypeVar

from godwit.content.predicates import Operator
from godwit.content.values import Record, Value, hash_key
from godwit.matching.scan import Boxed
from godwit.matching.shapes import Affix

K = TypeVar("K", bound=Hashable)

#: What distinguishes the shelves of a group from one another.
Tag: TypeAlias = tuple[str, Operator] | str

#: The attributes of a schema; the attribute, the end and the length of its affix, if it has one.
Signature: TypeAlias = tuple[tuple[str, ...], tuple[str, Operator, int] | None]

#: Keys that match, in lists that must not be changed.
Found: TypeAlias = list[list[K]]

#: Up to so many filters in a group, one list is faster than shelves; two to six makes little
#: difference.
FEW_MAX = 4


class KeyPlace(Protocol[K]):
    """Where a key is filed."""

    @property
    def shelf(self) -> Shelf[K]: ...

    def remove(self, key: K, places: Places[K]) -> None:
        """Remove `key`; others may move, and their new places are noted."""
        ...


#: The place of each key; several if its filter lists values, none if no record can match it.
Places: TypeAlias = dict[K, KeyPlace[K] | list[KeyPlace[K]]]


def note_place(places: Places[K], key: K, new: KeyPlace[K], old: KeyPlace[K] | None = None) -> None:
    """Note that `key` is filed in `new`, and no longer in `old`."""
    known = places.get(key)
    if not isinstance(known, list):
        places[key] = new
        return
    if old is not None:
        known.remove(old)
    known.append(new)


class Shelf(ABC, Generic[K]):
    """Filters of one group that are decided in one way."""

    __slots__ = ("group", "tag")

    def __init__(self, group: Group[K], tag: Tag) -> None:
        self.group = group
        self.tag = tag

    @property
    @abstractmethod
    def is_empty(self) -> bool: ...

    @abstractmethod
    def collect(self, record: Record, found: Found[K]) -> None:
        """Append to `found` the keys whose filters match `record`."""

    @abstractmethod
    def boxed(self) -> list[Boxed[K]] | None:
        """Its filters as boxes, in the order of `collect`; None if they are many."""


class Group(Generic[K]):
    """The filters that fix the same attributes to the same values."""

    __slots__ = ("few", "schema", "shelves", "sure", "values")

    def __init__(self, schema: Schema[K], values: tuple[object, ...]) -> None:
        self.schema = schema
        self.values = values
        self.shelves: list[Shelf[K]] = []
        self.few: list[Boxed[K]] | None = None
        """All filters, in the order of their shelves.  None if it must be built, and empty if the
        filters are too many: no group is empty."""
        self.sure: list[K] = []
        """The keys of `few`, if nothing remains to be decided."""

    def build_few(self) -> list[Boxed[K]]:
        self.few = self._list_few()
        is_sure = not any(intervals or checks for _, intervals, checks in self.few)
        self.sure = [key for key, _, _ in self.few] if is_sure else []
        return self.few

    def _list_few(self) -> list[Boxed[K]]:
        few: list[Boxed[K]] = []
        for shelf in self.shelves:
            boxed = shelf.boxed()
            if boxed is None or len(few) + len(boxed) > FEW_MAX:
                return []
            few += boxed
        return few

    def shelf(self, tag: Tag) -> Shelf[K] | None:
        for shelf in self.shelves:
            if shelf.tag == tag:
                return shelf
        return None


class Schema(Generic[K]):
    """The groups that fix the same attributes, by the values they fix them to."""

    __slots__ = (
        "_attributes", "_is_plain", "_tells_booleans", "groups", "only", "pair", "signature",
    )  # fmt: skip

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self.groups: dict[tuple[object, ...], Group[K]] = {}
        self._attributes = signature[0]
        self.only: str | None = None
        """The attribute, if groups are found by its value alone, as it is in the record."""
        self.pair: tuple[str, str] | None = None
        """The attributes, if groups are found by the values of two, as they are in the record."""
        match signature:
            case ((only,), None):
                self.only = only
            case ((first, second), None):
                self.pair = first, second
        # Only groups for 0, 1 or a boolean can be confused.  Without them the values of a record
        # need no `hash_key`, and a look-up takes half the time.
        self._tells_booleans = False
        self._is_plain = signature[1] is None

    def group(self, values: tuple[Value, ...], affix: Affix | None) -> Group[K]:
        """The group for these values, which is created if necessary."""
        hashed: tuple[object, ...] = tuple(map(hash_key, values))
        if affix is not None:
            hashed = (*hashed, affix.text)
        group = self.groups.get(hashed)
        if group is None:
            group = self.groups[hashed] = Group(self, hashed)
            if any(value in (0, 1) for value in values):
                self._tells_booleans = True
                self._is_plain = False
                self.only = self.pair = None
        return group

    def find(self, record: Record) -> Group[K] | None:
        """The one group whose values `record` has."""
        # An absent attribute gives None, which is not the value of any group.
        if self._is_plain:
            return self.groups.get(tuple(map(record.get, self._attributes)))
        values: tuple[object, ...] = tuple(map(record.get, self._attributes))
        if self._tells_booleans:
            values = tuple(map(hash_key, map(record.get, self._attributes)))
        affix = self.signature[1]
        if affix is not None:
            attribute, operator, length = affix
            text = record.get(attribute)
            if not isinstance(text, str):
                return None
            end = text[:length] if operator is Operator.STARTS_WITH else text[-length:]
            values = (*values, end)
        return self.groups.get(values)
