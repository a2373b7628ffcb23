"""Grid cells for joins without an equality: ranges, boxes, and places near each other.

A box is an interval in each of one, two or three dimensions.  Space is cut into cubes whose edge is
a power of four that is at least as long as the longest interval, so that a box meets at most two of
them in each dimension.  The exponent is the level of the box.  A point is in one cube of each
level.  So a point in a box shares exactly one cell with it; a point outside may share one, too:
a join by cells must still check the exact condition.

    range     1 dimension: a number, or a moment
    area      2: two ranges
    near      3: points on a sphere, where a great circle of some metres has a chord.  There are no
              poles and no date line in three dimensions.

Everything is a Spark SQL expression, built from expressions, never from text.

G1  A point in a box shares one cell with it, and not two.
G2  The level of a box depends only on its extent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from sqlglot import exp

from godwit.content.geography import EARTH_RADIUS_M
from godwit.datacluster.sql.expressions import call, double, expression, integer, real

#: Half the circumference: the largest distance of two places.
FARTHEST_M = math.pi * EARTH_RADIUS_M
#: Larger numbers are clamped to this one, for points and boxes alike; the order is kept.
LARGEST = 2.0**100
SMALLEST_EXTENT = 2.0**-40
#: Larger cell indices are clamped to this one: they are integers of 64 bits.
ROW_MAX = 2.0**62
#: Against rounding errors: an edge is a little longer than the box, ...
EDGE_SLACK = 1.001
#: ... and a chord a little longer than the exact one.
CHORD_SLACK = 1e-9


class GridInterval(NamedTuple):
    low: exp.Expr
    high: exp.Expr


def distance(lat1: exp.Expr, lon1: exp.Expr, lat2: exp.Expr, lon2: exp.Expr) -> exp.Expr:
    """Metres between two places given in degrees, as `content.geography.distance_m`."""
    return expression(
        f"""{2 * EARTH_RADIUS_M!r}D * asin(least(1.0D, sqrt(
            power(sin(radians(:lat2 - :lat1) / 2.0D), 2.0D)
            + cos(radians(:lat1)) * cos(radians(:lat2))
            * power(sin(radians(:lon2 - :lon1) / 2.0D), 2.0D))))""",
        lat1=double(lat1),
        lon1=double(lon1),
        lat2=double(lat2),
        lon2=double(lon2),
    )


def place(lat: exp.Expr, lon: exp.Expr) -> list[exp.Expr]:
    """A place in degrees as a point on the unit sphere."""
    degrees = {"lat": double(lat), "lon": double(lon)}
    return [
        expression("cos(radians(:lat)) * cos(radians(:lon))", **degrees),
        expression("cos(radians(:lat)) * sin(radians(:lon))", **degrees),
        expression("sin(radians(:lat))", **degrees),
    ]


def around(centre: Sequence[exp.Expr], radius_m: exp.Expr) -> list[GridInterval]:
    """The box around all points within `radius_m` of `centre`."""
    reach = chord(radius_m)
    return [
        GridInterval(
            expression(":x - :reach", x=x, reach=reach),
            expression(":x + :reach", x=x, reach=reach),
        )
        for x in centre
    ]


def chord(radius_m: exp.Expr) -> exp.Expr:
    """The length of the chord of a great-circle arc of `radius_m`, on the unit sphere."""
    if (known_m := _number(radius_m)) is not None:
        reach = 2 * math.sin(min(known_m, FARTHEST_M) / (2 * EARTH_RADIUS_M)) + CHORD_SLACK
        return real(reach)
    return expression(
        f"""2.0D * sin(least(:radius_m, {FARTHEST_M!r}D) / {2 * EARTH_RADIUS_M!r}D)
            + {CHORD_SLACK!r}D""",
        radius_m=double(radius_m),
    )


def between(ends: Sequence[exp.Expr]) -> list[GridInterval]:
    """The box of the ends low, high, low, high ..."""
    lows, highs = ends[::2], ends[1::2]
    return [
        GridInterval(bounded(low), bounded(high)) for low, high in zip(lows, highs, strict=True)
    ]


def bounded(x: exp.Expr) -> exp.Expr:
    return expression(f"greatest(least(:x, {LARGEST!r}D), {-LARGEST!r}D)", x=double(x))


def level_near(radius_m: exp.Expr) -> exp.Expr:
    """The level of a box `around` any place."""
    if (reach := _number(chord(radius_m))) is not None:
        # A constant makes planning faster.  A single level need not be a power of four.
        extent = max(2 * reach, SMALLEST_EXTENT) * EDGE_SLACK
        return integer(math.ceil(math.log2(extent)))
    return _level(expression("2.0D * :reach", reach=chord(radius_m)))


def level_of(box: Sequence[GridInterval]) -> exp.Expr:
    extents = [expression(":high - :low", high=high, low=low) for low, high in box]
    return _level(extents[0] if len(extents) == 1 else call("greatest", *extents))


def _level(extent: exp.Expr) -> exp.Expr:
    return expression(
        f"""2 * CAST(ceil(
            log2(greatest(:extent, {SMALLEST_EXTENT!r}D) * {EDGE_SLACK!r}D) / 2.0D) AS INT)""",
        extent=extent,
    )


def cell(point: Sequence[exp.Expr], level: exp.Expr) -> exp.Expr:
    """The cell of a point on a level."""
    return _hash([_place_in_row(x, level) for x in point], level)


def cells(box: Sequence[GridInterval], level: exp.Expr) -> exp.Expr:
    """The cells of a box, as an array: those of its corners, without duplicates."""
    corners: list[list[exp.Expr]] = [[]]
    for interval in box:
        ends = [_place_in_row(end, level) for end in interval]
        corners = [[*corner, end] for corner in corners for end in ends]
    return call("array_distinct", call("array", *(_hash(corner, level) for corner in corners)))


def _place_in_row(x: exp.Expr, level: exp.Expr) -> exp.Expr:
    if (known := _number(level)) is not None:
        return expression("floor(:x / :edge)", x=x, edge=real(2.0**known))
    return expression(
        f"floor(greatest(least(:x / power(2.0D, :level), {ROW_MAX!r}D), {-ROW_MAX!r}D))",
        x=x,
        level=level,
    )


def _hash(places: Sequence[exp.Expr], level: exp.Expr) -> exp.Expr:
    """The level is in the upper bits: cells of a point on two levels always differ (G1)."""
    return expression(
        "shiftleft(CAST(:level AS BIGINT), 54) | (:hash & 18014398509481983)",
        level=level,
        hash=call("xxhash64", *places),
    )


def _number(value: exp.Expr) -> float | None:
    sign, inner = 1.0, value.unnest()
    if isinstance(inner, exp.Neg):
        sign, inner = -1.0, inner.this.unnest()
    if isinstance(inner, exp.Cast) and inner.is_type("DOUBLE"):
        inner = inner.this.unnest()
    is_number = isinstance(inner, exp.Literal) and not inner.is_string
    return sign * float(inner.name) if is_number else None
