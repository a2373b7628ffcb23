"""Sets of values in a normal form, in which set algebra is exact: what one attribute may be.

    Region      OneOf (finitely many) | Interval (numbers) | Pattern (strings)
    Constraint  one region for each kind of value; "is present" is everything of every kind

Each region is in normal form, so two regions are the same set exactly when they are equal:

G1  An Interval holds more than one number, and excludes only numbers strictly inside it.
G2  A Pattern needs no substring that its prefix, its suffix or another needed substring already
    contains, and excludes only strings that it would otherwise hold.
G3  The empty region is always the object NOTHING, so that it is tested by identity.

Why string algebra is exact: prefix + X + substring + X + ... + suffix, with a
character X that occurs in none of them, always satisfies a Pattern, and lacks every prefix,
suffix or substring that the Pattern does *not* imply.  So Patterns are infinite, implication is
decided by comparing parts, and two Patterns intersect exactly when their prefixes and their
suffixes agree.  (This is for strings of any length; the length limit of the language can only
make two sets smaller, so `covers` errs on the safe side.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import TypeAlias

from godwit.content.values import Kind, Number, Value


@dataclass(frozen=True, slots=True)
class OneOf:
    """Finitely many values, all of one kind; no values at all is the empty region."""

    values: frozenset[Value] = frozenset()

    def has(self, value: Value) -> bool:
        return value in self.values

    def includes(self, other: Region) -> bool:
        """Whether every value of `other` is in here.  (What is not a OneOf is infinite.)"""
        return isinstance(other, OneOf) and other.values <= self.values

    def meet(self, other: Region) -> Region:
        return one_of(value for value in self.values if other.has(value))


@dataclass(frozen=True, slots=True)
class Interval:
    """The numbers between two bounds, except some."""

    low: Number = -inf
    low_open: bool = True
    high: Number = inf
    high_open: bool = True
    excluded: frozenset[Number] = frozenset()

    def has(self, value: Value) -> bool:
        assert not isinstance(value, str)
        if not self.low <= value <= self.high:
            return False
        if (value == self.low and self.low_open) or (value == self.high and self.high_open):
            return False
        return value not in self.excluded

    def includes(self, other: Region) -> bool:
        if isinstance(other, OneOf):
            return all(self.has(value) for value in other.values)
        assert isinstance(other, Interval), "regions of one kind"
        if other.low < self.low or other.high > self.high:
            return False
        if other.low == self.low and self.low_open and not other.low_open:
            return False
        if other.high == self.high and self.high_open and not other.high_open:
            return False
        return not any(other.has(x) for x in self.excluded)

    def meet(self, other: Region) -> Region:
        if isinstance(other, OneOf):
            return other.meet(self)
        assert isinstance(other, Interval), "regions of one kind"
        # Of two equal bounds the open one is the tighter.
        low, low_open = max((self.low, self.low_open), (other.low, other.low_open))
        high, closed = min((self.high, not self.high_open), (other.high, not other.high_open))
        return interval(low, low_open, high, not closed, self.excluded | other.excluded)


@dataclass(frozen=True, slots=True)
class Pattern:
    """The strings with a prefix, a suffix and some substrings, except some."""

    prefix: str = ""
    suffix: str = ""
    substrings: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()

    def has(self, value: Value) -> bool:
        assert isinstance(value, str)
        return (
            value.startswith(self.prefix)
            and value.endswith(self.suffix)
            and all(part in value for part in self.substrings)
            and value not in self.excluded
        )

    def includes(self, other: Region) -> bool:
        if isinstance(other, OneOf):
            return all(self.has(value) for value in other.values)
        assert isinstance(other, Pattern), "regions of one kind"
        sources = (other.prefix, other.suffix, *other.substrings)
        return (
            other.prefix.startswith(self.prefix)
            and other.suffix.endswith(self.suffix)
            and all(any(part in source for source in sources) for part in self.substrings)
            and not any(other.has(s) for s in self.excluded)
        )

    def meet(self, other: Region) -> Region:
        if isinstance(other, OneOf):
            return other.meet(self)
        assert isinstance(other, Pattern), "regions of one kind"
        prefix = max(self.prefix, other.prefix, key=len)
        suffix = max(self.suffix, other.suffix, key=len)
        if not (prefix.startswith(self.prefix) and prefix.startswith(other.prefix)):
            return NOTHING
        if not (suffix.endswith(self.suffix) and suffix.endswith(other.suffix)):
            return NOTHING
        substrings = self.substrings | other.substrings
        return pattern(prefix, suffix, substrings, self.excluded | other.excluded)


Region: TypeAlias = OneOf | Interval | Pattern

NOTHING = OneOf()
ALL_NUMBERS = Interval()
ALL_STRINGS = Pattern()
ALL_BOOLEANS = OneOf(frozenset({True, False}))


def one_of(values: Iterable[Value]) -> OneOf:
    """The region of these values (G3)."""
    return OneOf(found) if (found := frozenset(values)) else NOTHING


def interval(
    low: Number, low_open: bool, high: Number, high_open: bool, excluded: Iterable[Number]
) -> Region:
    """The normal form (G1) of an interval except some points."""
    without = frozenset(excluded)
    low_open = low_open or low in without
    high_open = high_open or high in without
    if low > high or (low == high and (low_open or high_open)):
        return NOTHING
    if low == high:
        return one_of((low,))
    inside = frozenset(x for x in without if low < x < high)
    return Interval(low, low_open, high, high_open, inside)


def pattern(
    prefix: str, suffix: str, substrings: Iterable[str], excluded: Iterable[str]
) -> Pattern:
    """The normal form (G2) of a pattern except some strings."""
    parts = {part for part in substrings if part not in prefix and part not in suffix}
    needed = frozenset(
        part for part in parts if not any(part in other for other in parts if other != part)
    )
    bare = Pattern(prefix, suffix, needed)
    return Pattern(prefix, suffix, needed, frozenset(s for s in excluded if bare.has(s)))


@dataclass(frozen=True, slots=True)
class Constraint:
    """What one attribute may be: a region for each kind of value."""

    numbers: Region = NOTHING
    strings: Region = NOTHING
    booleans: Region = NOTHING

    def has(self, value: Value) -> bool:
        if isinstance(value, str):
            return self.strings.has(value)
        if isinstance(value, bool):
            return self.booleans.has(value)
        return self.numbers.has(value)

    @property
    def is_empty(self) -> bool:
        return self.numbers is NOTHING and self.strings is NOTHING and self.booleans is NOTHING

    @property
    def only_value(self) -> Value | None:
        """The value that this constraint allows, if it allows exactly one."""
        found: Value | None = None
        for region in (self.numbers, self.strings, self.booleans):
            if region is NOTHING:
                continue
            if found is not None or not isinstance(region, OneOf) or len(region.values) > 1:
                return None
            (found,) = region.values
        return found

    def covers(self, other: Constraint) -> bool:
        return (
            (other.strings is NOTHING or self.strings.includes(other.strings))
            and (other.numbers is NOTHING or self.numbers.includes(other.numbers))
            and (other.booleans is NOTHING or self.booleans.includes(other.booleans))
        )

    def meet(self, other: Constraint) -> Constraint:
        return Constraint(
            _meet(self.numbers, other.numbers),
            _meet(self.strings, other.strings),
            _meet(self.booleans, other.booleans),
        )

    def intersects(self, other: Constraint) -> bool:
        return (
            _meet(self.strings, other.strings) is not NOTHING
            or _meet(self.numbers, other.numbers) is not NOTHING
            or _meet(self.booleans, other.booleans) is not NOTHING
        )


def _meet(a: Region, b: Region) -> Region:
    return NOTHING if a is NOTHING or b is NOTHING else a.meet(b)


def exactly(values: Iterable[Value]) -> Constraint:
    """One of `values`, which may be of several kinds."""
    numbers, strings, booleans = set[Value](), set[Value](), set[Value]()
    for value in values:
        if isinstance(value, str):
            strings.add(value)
        elif isinstance(value, bool):
            booleans.add(value)
        else:
            numbers.add(value)
    return Constraint(one_of(numbers), one_of(strings), one_of(booleans))


PRESENT = Constraint(ALL_NUMBERS, ALL_STRINGS, ALL_BOOLEANS)
PRESENT_OF_KIND = {
    Kind.NUMBER: Constraint(numbers=ALL_NUMBERS),
    Kind.STRING: Constraint(strings=ALL_STRINGS),
    Kind.BOOLEAN: Constraint(booleans=ALL_BOOLEANS),
}
