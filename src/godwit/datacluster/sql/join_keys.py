"""Join keys: conditions by which a relation is joined to others, equalities or grid cells.

A condition is a key of relation `x` to relations `joined` if

    f(x) = g(joined)                                  a hash join
    distance(place of x, place of joined) < metres    near, if metres are a constant or argument
    low(_s) <= f(x) <= high(_s)                       a range; two of them are an area
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import msgspec
from sqlglot import exp

from godwit.datacluster.sql import grid
from godwit.datacluster.sql.channel_query import SUBSCRIPTIONS
from godwit.datacluster.sql.null_on_error import TRYING
from godwit.datacluster.sql.safe_sql import DISTANCE

#: Types that ranges may have: those that are ordered like numbers.
ORDERED_TYPES = {
    *exp.DataType.NUMERIC_TYPES,
    exp.DataType.Type.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ,
}
DIMENSIONS_MAX = 3


class GridKey(msgspec.Struct, frozen=True):
    """Boxes of one side and points of the other side, joined by cells."""

    box: Callable[[Sequence[exp.Expr]], Sequence[grid.GridInterval]]
    """Makes the box around, or between, the `corners`."""

    corners: Sequence[exp.Expr]
    point: Sequence[exp.Expr]
    level: exp.Expr
    is_constant: bool
    """One level for all boxes; the boxes belong to the relation that is joined."""

    is_selective: bool
    """Useful even in addition to an equality."""


def references(part: exp.Expr) -> set[str]:
    """The relations whose columns occur."""
    return {item.table for item in part.find_all(exp.Column)}


def equality_keys(where: Sequence[exp.Expr], alias: str, joined: set[str]) -> list[exp.Expr]:
    return [
        condition
        for condition in where
        if isinstance(condition, exp.EQ | exp.NullSafeEQ)
        and condition.find(exp.Select) is None
        and _connects(references(condition.left), references(condition.right), alias, joined)
    ]


def grid_key(where: Sequence[exp.Expr], alias: str, joined: set[str]) -> GridKey | None:
    """The most selective grid key, if any."""
    for condition in where:
        if (near := _near_key(condition, alias, joined)) is not None:
            return near
    return _range_key(where, alias, joined)


def _connects(one: set[str], other: set[str], alias: str, joined: set[str]) -> bool:
    if other == {alias}:
        one, other = other, one
    return one == {alias} and bool(other) and other <= joined


# -- near --------------------------------------------------------------------------------------


def _near_key(condition: exp.Expr, alias: str, joined: set[str]) -> GridKey | None:
    compared = _at_most(condition)
    if compared is None:
        return None
    distance, radius = compared
    if not (isinstance(distance, exp.Anonymous) and distance.name.lower() == DISTANCE):
        return None
    lat1, lon1, lat2, lon2 = distance.expressions
    here, there = (lat1, lon1), (lat2, lon2)
    if references(lat2) | references(lon2) == {alias}:
        here, there = there, here
    of_here = references(here[0]) | references(here[1])
    of_there = references(there[0]) | references(there[1])
    if not _connects(of_here, of_there, alias, joined) or radius.find(exp.Select):
        return None
    level = grid.level_near(radius)
    is_constant = not references(radius)
    if not is_constant:
        if references(radius) != {SUBSCRIPTIONS} or SUBSCRIPTIONS not in joined:
            return None
        here, there = there, here
    return GridKey(
        partial(grid.around, radius_m=radius),
        grid.place(*here),
        grid.place(*there),
        level,
        is_constant=is_constant,
        is_selective=True,
    )


def _at_most(condition: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    """`(a, b)` if the condition is a < b or a <= b."""
    if isinstance(condition, exp.LT | exp.LTE):
        return condition.left.unnest(), condition.right.unnest()
    if isinstance(condition, exp.GT | exp.GTE):
        return condition.right.unnest(), condition.left.unnest()
    return None


# -- ranges and areas --------------------------------------------------------------------------


def _range_key(where: Sequence[exp.Expr], alias: str, joined: set[str]) -> GridKey | None:
    if SUBSCRIPTIONS not in joined:
        return None
    lows: dict[str, exp.Expr] = {}
    highs: dict[str, exp.Expr] = {}
    points: dict[str, exp.Expr] = {}
    for condition in where:
        for low, high in _orders(condition):
            for point, bound, bounds in ((high, low, lows), (low, high, highs)):
                is_range = references(point) == {alias} and references(bound) == {SUBSCRIPTIONS}
                if is_range and _is_ordered(point) and _is_ordered(bound):
                    name = point.sql()
                    points[name] = point
                    bounds.setdefault(name, bound)
    names = [name for name in points if name in lows and name in highs][:DIMENSIONS_MAX]
    if not names:
        return None
    ends = [end for name in names for end in (lows[name], highs[name])]
    return GridKey(
        grid.between,
        ends,
        [grid.bounded(points[name]) for name in names],
        grid.level_of(grid.between(ends)),
        is_constant=False,
        is_selective=len(names) > 1,
    )


def _orders(condition: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """The pairs (a, b) for which the condition implies a <= b."""
    if condition.find(exp.Select):
        return
    if isinstance(condition, exp.Between):
        yield condition.args["low"], condition.this
        yield condition.this, condition.args["high"]
    elif (compared := _at_most(condition)) is not None:
        yield compared


def _is_ordered(part: exp.Expr) -> bool:
    if isinstance(part, exp.Anonymous) and part.name in TRYING:
        return all(map(_is_ordered, part.expressions))
    return part.type is not None and part.type.this in ORDERED_TYPES
