"""The shape of a filter: what the index looks up, compares and checks.

    Filter --> Shape: choices   attributes with few allowed values    found by hashing
                      affix     the start or the end of one string    found by hashing
                      residual  what remains to be decided            a threshold, a box or nothing

A box states its intervals as closed float64 intervals, which NumPy can compare.  That is exact:

X1  Bounds below 2**53 in size.  The float64 numbers that satisfy an open bound are those from the
    next float64 on.  A record's integer that is not a float64 lies beyond +-2**53, so it and the
    float64 next to it are on the same side of such a bound.
X2  Larger bounds are rounded outwards, and the box carries a check with the exact constraint.
    Rounding never reverses an order, so the rounded comparison misses no match.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, nextafter
from typing import NamedTuple, TypeAlias

from godwit.content.filters import Filter
from godwit.content.predicates import Operator
from godwit.content.regions import NOTHING, Constraint, Interval, OneOf, Pattern
from godwit.content.values import Number, Value

#: A filter with lists of values is filed once for each combination, up to this many.
COMBINATIONS_MAX = 16

#: Longer prefixes and suffixes are looked up by so many first or last characters.  A record costs
#: a look-up for each distinct length.
AFFIX_LENGTH_MAX = 16

FLOAT_EXACT_MAX = 2.0**53

#: Closed intervals: attribute, low, high.
Intervals: TypeAlias = tuple[tuple[str, float, float], ...]

#: Attributes and the exact constraint that the value of each must satisfy.
Checks: TypeAlias = tuple[tuple[str, Constraint], ...]


class Threshold(NamedTuple):
    """One bound on one attribute."""

    attribute: str
    operator: Operator
    bound: Number


class Box(NamedTuple):
    """Closed intervals and checks that must all hold."""

    intervals: Intervals = ()
    checks: Checks = ()


Residual: TypeAlias = Threshold | Box | None


class Affix(NamedTuple):
    """How the string in `attribute` starts or ends."""

    attribute: str
    operator: Operator
    text: str


class Shape(NamedTuple):
    """The parts of a satisfiable filter."""

    attributes: tuple[str, ...]
    """Attributes with few allowed values, by name ..."""
    choices: tuple[tuple[Value, ...], ...]
    """... and the values of each."""
    affix: Affix | None
    residual: Residual


def shape_of(filter: Filter) -> Shape:
    """Split `filter` into what can be hashed, what can be compared, what must be checked."""
    assert filter.is_satisfiable, "a filter that no record matches has no shape"
    listed: list[tuple[str, tuple[Value, ...]]] = []
    others: list[tuple[str, Constraint]] = []
    combinations = 1
    for attribute, constraint in filter.constraints.items():
        values = _listed_values(constraint)
        if values is None or combinations * len(values) > COMBINATIONS_MAX:
            others.append((attribute, constraint))
        else:
            combinations *= len(values)
            listed.append((attribute, values))
    listed.sort()
    attributes = tuple([attribute for attribute, _ in listed])
    choices = tuple([values for _, values in listed])
    return (
        Shape(attributes, choices, *_decide(others))
        if others
        else Shape(attributes, choices, None, None)
    )


def _listed_values(constraint: Constraint) -> tuple[Value, ...] | None:
    """Every value that `constraint` allows, unless there are infinitely many."""
    numbers, strings, booleans = constraint.numbers, constraint.strings, constraint.booleans
    if numbers is NOTHING and booleans is NOTHING:  # The usual case: half the time.
        return tuple(strings.values) if isinstance(strings, OneOf) else None
    if isinstance(numbers, OneOf) and isinstance(strings, OneOf) and isinstance(booleans, OneOf):
        return (*strings.values, *numbers.values, *booleans.values)
    return None


def _decide(constraints: list[tuple[str, Constraint]]) -> tuple[Affix | None, Residual]:
    """What remains to be decided: by an affix if there is one, then by comparing and checking."""
    affix: Affix | None = None
    intervals: list[tuple[str, Interval]] = []
    checks: list[tuple[str, Constraint]] = []
    for attribute, constraint in constraints:
        numbers, strings = constraint.numbers, constraint.strings
        if constraint.booleans is not NOTHING:
            checks.append((attribute, constraint))
        elif strings is NOTHING and isinstance(numbers, Interval):
            intervals.append((attribute, numbers))
            if numbers.excluded or not _is_plain(numbers):
                checks.append((attribute, constraint))
        elif numbers is NOTHING and isinstance(strings, Pattern) and affix is None:
            affix = _affix(attribute, strings)
            if affix is None or not _is_whole(affix, strings):
                checks.append((attribute, constraint))
        else:
            checks.append((attribute, constraint))
    return affix, _residual(intervals, checks)


def _affix(attribute: str, strings: Pattern) -> Affix | None:
    """The longer of prefix and suffix, cut to the length that is looked up."""
    if strings.prefix and len(strings.prefix) >= len(strings.suffix):
        return Affix(attribute, Operator.STARTS_WITH, strings.prefix[:AFFIX_LENGTH_MAX])
    if strings.suffix:
        return Affix(attribute, Operator.ENDS_WITH, strings.suffix[-AFFIX_LENGTH_MAX:])
    return None


def _is_whole(affix: Affix, strings: Pattern) -> bool:
    if affix.operator is Operator.STARTS_WITH:
        return strings == Pattern(prefix=affix.text)
    return strings == Pattern(suffix=affix.text)


def _residual(
    intervals: list[tuple[str, Interval]], checks: list[tuple[str, Constraint]]
) -> Residual:
    if len(intervals) == 1 and all(attribute == intervals[0][0] for attribute, _ in checks):
        ((attribute, only),) = intervals
        if (threshold := _threshold(attribute, only)) is not None:
            return threshold
    if not intervals and not checks:
        return None
    return Box(_closed(intervals), tuple(checks))


def box_of(threshold: Threshold) -> Box:
    """The same condition as a box."""
    attribute, operator, bound = threshold
    match operator:
        case Operator.ABOVE | Operator.AT_LEAST:
            only = Interval(low=bound, low_open=operator is Operator.ABOVE)
        case _:
            only = Interval(high=bound, high_open=operator is Operator.BELOW)
    checks = () if _is_plain(only) else ((attribute, Constraint(numbers=only)),)
    return Box(_closed([(attribute, only)]), checks)


def _threshold(attribute: str, only: Interval) -> Threshold | None:
    if only.excluded or (only.low == -inf) == (only.high == inf):
        return None
    if only.high == inf:
        operator = Operator.ABOVE if only.low_open else Operator.AT_LEAST
        return Threshold(attribute, operator, only.low)
    operator = Operator.BELOW if only.high_open else Operator.AT_MOST
    return Threshold(attribute, operator, only.high)


def _closed(intervals: Iterable[tuple[str, Interval]]) -> Intervals:
    """The intervals with closed float64 bounds (X1, X2)."""
    return tuple(
        (
            attribute,
            _at_least(interval.low, interval.low_open),
            -_at_least(-interval.high, interval.high_open),
        )
        for attribute, interval in intervals
    )


def _is_plain(interval: Interval) -> bool:
    low, high = interval.low, interval.high
    return (_is_exact(low) or low == -inf) and (_is_exact(high) or high == inf)


def _at_least(low: Number, is_open: bool) -> float:
    """The least float64 that is not below `low`, or for large bounds one that is not above it."""
    if _is_exact(low):
        return nextafter(low, inf) if is_open else float(low)
    rounded = float(low)
    return rounded if rounded <= low else nextafter(rounded, -inf)


def _is_exact(bound: Number) -> bool:
    """Whether `bound` can be moved to the next float64 without loss (X1)."""
    return -FLOAT_EXACT_MAX < bound < FLOAT_EXACT_MAX
