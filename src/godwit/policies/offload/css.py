"""The covering subscription set of many filters, kept while filters leave.

Paper    Cheung, thesis 3.2 and 4.3.1: the subscriptions that no other one covers; the children of
         the poset's ROOT.
Claim    `css` has exactly the filters that no other filter here covers.  To build it takes about
         n log n, because each filter is compared only with those that can cover it:

             filter --> the attributes it fixes, with their values   hashing, for each part of them
                    --> shelf: nothing remains                       covers
                               one bound          sorted             bisection
                               several intervals  arrays of bounds   NumPy, 1 to 2 ns for each pair
                               others             list               `Filter.covers`, SCAN_MAX

Departs  1. A filter remembers one filter that covers it (its witness) instead of all its parents;
            when the witness leaves, it looks for another.  content/poset.py has the whole order,
            but compares a new filter with the members of the css and with siblings: 10,000 filters
            over 1,000 symbols take it 85 s.
         2. The witness is the narrowest cover on its shelf: an input offload removes members of
            the css, so the narrow covers leave last and few filters have to look again.
         3. After SCAN_MAX filters of other kinds (patterns, lists, exceptions) the search gives
            up, and the filter counts as uncovered.  It is then one candidate more; estimates do
            not depend on it.
Tested   tests/policies/offload/test_css.py: against content/poset.py and against all pairs.

S1  A witness is here and covers its filter; a filter without a witness is in css.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, KeysView
from math import inf
from operator import itemgetter
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from godwit.content.filters import Filter
from godwit.content.regions import NOTHING, Constraint, Interval, OneOf
from godwit.content.values import Number, hash_key

#: Filters of a shelf without order that a search looks at.
SCAN_MAX = 1_000

#: Attributes with one possible value, by name, and those values.
Fixed: TypeAlias = tuple[tuple[str, ...], tuple[object, ...]]
#: A bound: its place, and 1 if it is open.  Of two, the smaller leaves more room.
Edge: TypeAlias = tuple[Number, int]
#: Both bounds; the upper one negated, so that smaller is wider for both.
Edges: TypeAlias = tuple[Edge, Edge]


class _Shelf(ABC):
    """Filters that fix the same attributes to the same values, and leave the same ones open."""

    def __init__(self, open_attributes: tuple[str, ...]) -> None:
        self.open_attributes = open_attributes
        self.names = frozenset(open_attributes)

    @abstractmethod
    def add(self, filter: Filter) -> None: ...

    @abstractmethod
    def remove(self, filter: Filter) -> None: ...

    @abstractmethod
    def cover(self, filter: Filter, *, is_here: bool) -> Filter | None:
        """A filter of this shelf that covers `filter`; another one if `filter` is here itself."""


class _List(_Shelf):
    """In no order.  Also the shelf of the filter that leaves nothing open."""

    def __init__(self, open_attributes: tuple[str, ...]) -> None:
        super().__init__(open_attributes)
        self._filters: dict[Filter, None] = {}

    def add(self, filter: Filter) -> None:
        self._filters[filter] = None

    def remove(self, filter: Filter) -> None:
        del self._filters[filter]

    def cover(self, filter: Filter, *, is_here: bool) -> Filter | None:
        for looked, other in enumerate(self._filters):
            if looked == SCAN_MAX:
                return None
            if other.covers(filter) and not (is_here and other == filter):
                return other
        return None


class _Chain(_Shelf):
    """One bound on one attribute: each filter covers all that are above it in the order."""

    def __init__(self, attribute: str, side: int) -> None:
        super().__init__((attribute,))
        self._side = side
        self._order: list[Edge] = []
        self._filters: dict[Edge, Filter] = {}

    def _edge(self, filter: Filter) -> Edge | None:
        edges = _edges(filter.constraints[self.open_attributes[0]])
        return None if edges is None else edges[self._side]

    def add(self, filter: Filter) -> None:
        edge = self._edge(filter)
        assert edge is not None
        if edge not in self._filters:
            insort(self._order, edge)
        self._filters[edge] = filter

    def remove(self, filter: Filter) -> None:
        edge = self._edge(filter)
        assert edge is not None
        del self._order[bisect_left(self._order, edge)]
        del self._filters[edge]

    def cover(self, filter: Filter, *, is_here: bool) -> Filter | None:
        edge = self._edge(filter)
        if edge is None:
            return None
        order = self._order
        place = bisect_left(order, edge) if is_here else bisect_right(order, edge)
        return self._filters[order[place - 1]] if place else None


class _Boxes(_Shelf):
    """Several intervals: bounds in arrays, which are compared all at once."""

    def __init__(self, open_attributes: tuple[str, ...]) -> None:
        super().__init__(open_attributes)
        self._places: dict[Filter, int] = {}
        self._filters: list[Filter] = []
        self._bounds: NDArray[np.float64] | None = None

    def add(self, filter: Filter) -> None:
        self._places[filter] = len(self._filters)
        self._filters.append(filter)
        self._bounds = None

    def remove(self, filter: Filter) -> None:
        place = self._places.pop(filter)
        if self._bounds is not None:
            self._bounds[:, place] = inf  # Covers nothing.

    def _row(self, filter: Filter) -> list[float] | None:
        row: list[float] = []
        for attribute in self.open_attributes:
            edges = _edges(filter.constraints[attribute])
            if edges is None:
                return None
            row += [float(edge[0]) for edge in edges]
        return row

    def cover(self, filter: Filter, *, is_here: bool) -> Filter | None:
        row = self._row(filter)
        if row is None:
            return None
        if self._bounds is None:
            self._filters = list(self._places)
            self._places = {other: place for place, other in enumerate(self._filters)}
            rows = [self._row(other) for other in self._filters]
            self._bounds = np.array(rows, dtype=np.float64).T.reshape(len(row), len(rows)).copy()
        possible = self._bounds[0] <= row[0]
        for bounds, bound in zip(self._bounds[1:], row[1:], strict=True):
            possible &= bounds <= bound
        # Rounding never reverses an order, so that no cover is missed; `covers` is exact.
        for place in np.flatnonzero(possible)[::-1].tolist():
            other: Filter = self._filters[place]
            if other.covers(filter) and not (is_here and other == filter):
                return other
        return None


class CoverIndex:
    """Filters in which a cover of another filter is found."""

    def __init__(self, filters: Iterable[Filter] = ()) -> None:
        self._shelves: dict[tuple[str, ...], dict[tuple[object, ...], list[_Shelf]]] = {}
        self._shelf_by_tag: dict[tuple[object, ...], _Shelf] = {}
        self._members: dict[Filter, tuple[_Shelf, Fixed]] = {}
        self._parts_of: dict[tuple[str, ...], list[tuple[tuple[str, ...], list[int]]]] = {}
        for filter in filters:
            self.add(filter)

    def __iter__(self) -> Iterator[Filter]:
        return iter(self._members)

    def __contains__(self, filter: object) -> bool:
        return filter in self._members

    def add(self, filter: Filter) -> None:
        """A filter that no record matches covers nothing, and is left out."""
        if filter in self._members or not filter.is_satisfiable:
            return
        fixed, left = _fixed(filter)
        kind, names = _kind(left)
        tag = (fixed, kind, names)
        shelf = self._shelf_by_tag.get(tag)
        if shelf is None:
            shelf = self._shelf_by_tag[tag] = _new_shelf(kind, names)
            attributes, values = fixed
            if attributes not in self._shelves:
                self._shelves[attributes] = {}
                self._parts_of.clear()
            shelves = self._shelves[attributes].setdefault(values, [])
            # Narrow filters first: what leaves nothing open is the last.
            shelves.insert(len(shelves) if kind == "list" else 0, shelf)
        shelf.add(filter)
        self._members[filter] = shelf, fixed

    def remove(self, filter: Filter) -> None:
        member = self._members.pop(filter, None)
        if member is not None:
            member[0].remove(filter)

    def covers(self, filter: Filter) -> bool:
        """Whether a filter here covers `filter`, or equals it."""
        return filter in self._members or self.cover(filter) is not None

    def cover(self, filter: Filter) -> Filter | None:
        """A filter here that covers `filter` and does not equal it; narrow ones first."""
        member = self._members.get(filter)
        own, (attributes, values) = (None, _fixed(filter)[0]) if member is None else member
        names = filter.constraints.keys()
        for part, places in self._parts_of.get(attributes) or self._parts(attributes):
            some = tuple([values[place] for place in places])
            for shelf in self._shelves[part].get(some, ()):
                if names >= shelf.names:
                    found = shelf.cover(filter, is_here=shelf is own)
                    if found is not None:
                        return found
        return None

    def _parts(self, attributes: tuple[str, ...]) -> list[tuple[tuple[str, ...], list[int]]]:
        """The sets of attributes that filters here fix and that are part of `attributes`.

        Each with its places in `attributes`; the largest first.
        """
        known = set(attributes)
        found = sorted((part for part in self._shelves if known.issuperset(part)), key=len)
        parts = [(part, [attributes.index(name) for name in part]) for part in reversed(found)]
        self._parts_of[attributes] = parts
        return parts


class CoveringSubscriptions:
    """Distinct filters and their covering subscription set, while filters leave."""

    def __init__(self, filters: Iterable[Filter]) -> None:
        self._index = CoverIndex(filters)
        self._css: dict[Filter, None] = {}
        self._behind: dict[Filter, dict[Filter, None]] = {}
        self._witness: dict[Filter, Filter] = {}
        for filter in self._index:
            self._place(filter)

    @property
    def css(self) -> KeysView[Filter]:
        return self._css.keys()

    def remove(self, filter: Filter) -> list[Filter]:
        """A filter leaves; returns those that are in css now because of it."""
        self._index.remove(filter)
        self._css.pop(filter, None)
        witness = self._witness.pop(filter, None)
        if witness is not None:
            del self._behind[witness][filter]
        return [other for other in self._behind.pop(filter, ()) if self._place(other)]

    def _place(self, filter: Filter) -> bool:
        """Put a filter behind a witness (S1); whether it is in css because there is none."""
        witness = self._index.cover(filter)
        if witness is None:
            self._witness.pop(filter, None)
            self._css[filter] = None
            return True
        self._witness[filter] = witness
        self._behind.setdefault(witness, {})[filter] = None
        return False


def covering_set(filters: Iterable[Filter]) -> tuple[Filter, ...]:
    """The covering subscription set of some filters, in their order."""
    return tuple(CoveringSubscriptions(filters).css)


def _fixed(filter: Filter) -> tuple[Fixed, list[tuple[str, Constraint]]]:
    """The attributes with one possible value, by name, with that value; and the others."""
    fixed: dict[str, object] = dict(filter.fixed_texts)
    left: list[tuple[str, Constraint]] = []
    for name, constraint in filter.constraints.items():
        if name in fixed:
            continue
        value = constraint.only_value
        if value is None:
            left.append((name, constraint))
        else:
            fixed[name] = hash_key(value)
    attributes = tuple(sorted(fixed))
    left.sort(key=itemgetter(0))
    return (attributes, tuple([fixed[name] for name in attributes])), left


def _kind(left: list[tuple[str, Constraint]]) -> tuple[str, tuple[str, ...]]:
    """Which shelf a filter is on, by what it leaves open."""
    names = tuple([name for name, _ in left])
    if not left:
        return "list", names
    for _, constraint in left:
        numbers = constraint.numbers
        if (
            constraint.strings is not NOTHING
            or constraint.booleans is not NOTHING
            or not isinstance(numbers, Interval)
            or numbers.excluded
        ):
            return "list", names
    if len(left) == 1:
        only = left[0][1].numbers
        assert isinstance(only, Interval)
        if (only.low == -inf) != (only.high == inf):
            return ("low" if only.high == inf else "high"), names
    return "boxes", names


def _new_shelf(kind: str, names: tuple[str, ...]) -> _Shelf:
    match kind:
        case "low" | "high":
            return _Chain(names[0], 0 if kind == "low" else 1)
        case "boxes":
            return _Boxes(names)
        case _:
            return _List(names)


def _edges(constraint: Constraint) -> Edges | None:
    """The bounds of an attribute that must be a number; None if it may be something else."""
    if constraint.strings is not NOTHING or constraint.booleans is not NOTHING:
        return None
    numbers = constraint.numbers
    if isinstance(numbers, Interval):
        return (numbers.low, int(numbers.low_open)), (-numbers.high, int(numbers.high_open))
    assert isinstance(numbers, OneOf), "a region of numbers"
    values = [value for value in numbers.values if not isinstance(value, str)]
    return (min(values), 0), (-max(values), 0)
