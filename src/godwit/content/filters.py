"""Filters: conjunctions of predicates on attributes.

    text --> predicates (as written) --> constraints (one normal form for each attribute)

The predicates are kept for printing and explaining; the constraints decide everything else.
Because they are a normal form, two filters that match the same records are equal, also as
dictionary keys: `x > 5 and x > 3` == `x > 5`.

`covers`, `intersects` and `relation` are exact for every operator of the language: numbers are
real numbers, strings are strings of any length (see regions.py for why that works).

Read next: text.py (the two text forms), explanation.py, covering.py, ../matching/.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from godwit.content.explanation import Explanation, explain
from godwit.content.predicates import Predicate
from godwit.content.regions import PRESENT, Constraint
from godwit.content.text import format_padres, format_readable, parse_predicates
from godwit.content.values import (
    CHARACTERS_PER_FILTER_MAX,
    PREDICATES_PER_FILTER_MAX,
    Record,
    check_values,
)
from godwit.errors import ContentError

#: Permitted tuples of attribute names that an advertisement caches: a publisher uses one or two.
PERMITTED_NAMES_MAX = 16


class Relation(Enum):
    """How the records of one filter relate to the records of another."""

    EQUAL = "equal"
    SUPERSET = "superset"
    SUBSET = "subset"
    INTERSECT = "intersect"
    EMPTY = "empty"


class Filter:
    """A conjunction of predicates.  Immutable; equal to every filter with the same matches."""

    __slots__ = (
        "_hash", "_last_names", "_others", "_permitted_names", "_present", "_texts", "_valued",
        "constraints", "is_satisfiable", "predicates",
    )  # fmt: skip

    predicates: tuple[Predicate, ...]
    constraints: Mapping[str, Constraint]
    is_satisfiable: bool

    def __init__(self, predicates: Iterable[Predicate]) -> None:
        if isinstance(predicates, str):
            raise ContentError("Filter() takes predicates; for text, use Filter.parse(text)")
        self.predicates = tuple(predicates)
        if not 1 <= len(self.predicates) <= PREDICATES_PER_FILTER_MAX:
            raise ContentError(
                f"a filter of {len(self.predicates)} predicates;"
                f" 1 to {PREDICATES_PER_FILTER_MAX} are allowed"
            )
        characters = sum(predicate.characters for predicate in self.predicates)
        if characters > CHARACTERS_PER_FILTER_MAX:
            raise ContentError(
                f"strings of {characters} characters in one filter;"
                f" at most {CHARACTERS_PER_FILTER_MAX} are allowed"
            )
        constraints: dict[str, Constraint] = {}
        for predicate in self.predicates:
            known = constraints.get(predicate.attribute)
            wanted = predicate.constraint
            constraints[predicate.attribute] = wanted if known is None else known.meet(wanted)
        self.constraints = constraints
        self.is_satisfiable = not any(c.is_empty for c in constraints.values())
        self._hash: int | None = None
        # Most filters fix a class or a symbol, and most records fail on it; a string equals only
        # a string.  So these are compared first, without looking at kinds.
        self._texts: list[tuple[str, str]] = []
        self._others: list[tuple[str, Constraint]] = []
        # An advertisement mostly lists attributes that may have any value.
        present: list[str] = []
        for attribute, constraint in constraints.items():
            only = constraint.only_value
            if isinstance(only, str):
                # Last: many records share a class, so that other attributes are more selective.
                place = len(self._texts) if attribute == "class" else 0
                self._texts.insert(place, (attribute, only))
            elif constraint == PRESENT:
                present.append(attribute)
            else:
                self._others.append((attribute, constraint))
        self._present = frozenset(present) if present else None
        # For `permits`: names that were found to be right, and what must then still match.
        self._permitted_names: frozenset[tuple[str, ...]] = frozenset()
        self._last_names: tuple[str, ...] | None = None
        self._valued: Filter | None = None

    @classmethod
    def parse(cls, text: str) -> Filter:
        """Read either text form: `[class,eq,'STOCK'],[volume,>,5]` or `class = 'STOCK' and ...`."""
        return cls(parse_predicates(text))

    @property
    def fixed_texts(self) -> Sequence[tuple[str, str]]:
        """Attributes that must equal one string, with that string."""
        return self._texts

    def matches(self, record: Mapping[str, object]) -> bool:
        """Whether `record` satisfies every predicate; ContentError if something is not a value."""
        return self.matches_checked(check_values(record))

    def matches_checked(self, record: Record) -> bool:
        """As `matches`, for a record whose values were checked, so that it is not done twice."""
        for attribute, text in self._texts:
            if record.get(attribute) != text:
                return False
        if self._present is not None and not self._present <= record.keys():
            return False
        for attribute, constraint in self._others:
            value = record.get(attribute)
            if value is None or not constraint.has(value):
                return False
        return True

    def explain(self, record: Mapping[str, object]) -> Explanation:
        """Why `record` matches, or which predicate it fails and with what value."""
        return explain(self.predicates, check_values(record))

    def covers(self, other: Filter) -> bool:
        """Whether every record that matches `other` matches this filter."""
        if not other.is_satisfiable:
            return True
        theirs = other.constraints
        for attribute, constraint in self.constraints.items():
            their = theirs.get(attribute)
            if their is None or not constraint.covers(their):
                return False
        return True

    def intersects(self, other: Filter) -> bool:
        """Whether some record matches both."""
        if not (self.is_satisfiable and other.is_satisfiable):
            return False
        theirs = other.constraints
        for attribute, constraint in self.constraints.items():
            their = theirs.get(attribute)
            if their is not None and not constraint.intersects(their):
                return False
        return True

    def announces(self, interest: Filter) -> bool:
        """As an advertisement: whether a publication under it may match `interest`.

        An advertisement names every attribute of its publications, so that none of them matches
        an interest in another attribute (thesis 3.1).
        """
        return interest.constraints.keys() <= self.constraints.keys() and self.intersects(interest)

    def permits(self, record: Mapping[str, object]) -> bool:
        """As an advertisement: whether a publication with this content may be sent under it."""
        return self.permits_checked(check_values(record))

    def permits_checked(self, record: Record) -> bool:
        """As `permits`, for a record whose values were checked."""
        names = tuple(record)
        if names != self._last_names:
            if names not in self._permitted_names and not self._permits_names(names):
                return False
            self._last_names = names
        return self._valued is None or self._valued.matches_checked(record)

    def _permits_names(self, names: tuple[str, ...]) -> bool:
        given = set(names)
        if not self.constraints.keys() >= given or not (self._present or frozenset()) <= given:
            return False
        if len(self._permitted_names) < PERMITTED_NAMES_MAX:
            self._permitted_names |= {names}
        valued = [p for p in self.predicates if self.constraints[p.attribute] != PRESENT]
        self._valued = Filter(valued) if valued else None
        return True

    def why_not_permitted(self, record: Record) -> str:
        """What is wrong with a record that this filter, as an advertisement, does not permit."""
        return f"the advertisement {self.obstacles(record)[0]}"

    def obstacles(self, record: Record) -> list[str]:
        """As an advertisement: each attribute and predicate that keeps it from permitting this."""
        unnamed = sorted(record.keys() - self.constraints.keys())
        return [
            *(f"does not name the attribute {attribute}" for attribute in unnamed),
            *(f"does not permit this: {failure}" for failure in self.explain(record).failures),
        ]

    def relation(self, other: Filter) -> Relation:
        """How the records of this filter relate to those of `other`.

        EMPTY means that no record matches both; a filter that no record matches is EMPTY even
        with itself.
        """
        if not self.intersects(other):
            return Relation.EMPTY
        if self == other:
            return Relation.EQUAL
        if self.covers(other):
            return Relation.SUPERSET
        if other.covers(self):
            return Relation.SUBSET
        return Relation.INTERSECT

    def padres(self) -> str:
        """The PADRES text form."""
        return format_padres(self.predicates)

    def __str__(self) -> str:
        return format_readable(self.predicates)

    def __repr__(self) -> str:
        return f"Filter.parse({str(self)!r})"

    def __reduce__(self) -> tuple[type[Filter], tuple[tuple[Predicate, ...]]]:
        """Copies are constructed: the empty region is one object (G3), hashes differ by process."""
        return Filter, (self.predicates,)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Filter):
            return NotImplemented
        if self.is_satisfiable != other.is_satisfiable:
            return False
        return not self.is_satisfiable or self.constraints == other.constraints

    def __hash__(self) -> int:
        if self._hash is None:
            key = frozenset(self.constraints.items()) if self.is_satisfiable else None
            self._hash = hash(key)
        return self._hash
