"""Channels of every kind, each with what its results are, in plain Python."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from tests.datacluster.memory_snapshots import Record

Row = tuple[object, ...]
TYPES = ("fire", "flood", "storm")
USERS = ("u1", "u2", "u3", "u4")
#: Where maps are difficult: somewhere, at the date line, and at a pole.
CENTRES = ((60.0, 25.0), (0.0, 180.0), (89.97, 40.0))
STEP = 0.01
EARTH_RADIUS_M = 6_371_008.8


@dataclass(frozen=True)
class World:
    """What an execution sees."""

    new: Sequence[Record]
    reports: Sequence[Record]
    users: Sequence[Record]
    shelters: Sequence[Record]


@dataclass(frozen=True)
class Kind:
    name: str
    parameters: str
    query: str
    arguments: Callable[[Random, tuple[float, float]], Mapping[str, object]]
    expected: Callable[[Mapping[str, object], World], list[Row]]


def metres(one: Record, other: Record) -> float:
    """By another formula than ours: the angle between two vectors."""
    a, b = _vector(one), _vector(other)
    cross = (
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return EARTH_RADIUS_M * math.atan2(math.hypot(*cross), dot)


def _vector(place: Record) -> tuple[float, float, float]:
    lat, lon = math.radians(number(place["lat"])), math.radians(number(place["lon"]))
    return math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)


def number(value: object) -> float:
    assert isinstance(value, int | float)
    return value


def random_place(random: Random, centre: tuple[float, float]) -> dict[str, object]:
    """On a lattice, so that places are the same, and on the edges of boxes, now and then."""
    lat = centre[0] + random.randrange(-8, 9) * STEP / 2
    lon = centre[1] + random.randrange(-8, 9) * STEP
    return {"lat": min(90.0, lat), "lon": (lon + 180) % 360 - 180}


def _a_type(random: Random, _: tuple[float, float]) -> dict[str, object]:
    return {"type": random.choice([*TYPES, "none", "' OR '1'='1"])}


def _a_user(random: Random, _: tuple[float, float]) -> dict[str, object]:
    return {"user": random.choice([*USERS, "nobody"])}


def _a_range(random: Random, _: tuple[float, float]) -> dict[str, object]:
    low = random.choice([-1e300, -1.0, 0.0, 0.25, 0.5, 2.0])
    return {"low": low, "high": low + random.choice([0.0, 0.25, 3.0, 1e300, -1.0])}


def _a_box(random: Random, centre: tuple[float, float]) -> dict[str, object]:
    one, other = random_place(random, centre), random_place(random, centre)
    ends = [sorted([number(one[axis]), number(other[axis])]) for axis in ("lat", "lon")]
    return dict(zip(("south", "north", "west", "east"), [*ends[0], *ends[1]], strict=True))


def _a_circle(random: Random, centre: tuple[float, float]) -> dict[str, object]:
    # None of the radii is the distance of two places on the lattice, which is left to rounding.
    return random_place(random, centre) | {
        "radius": random.choice([-5.0, 1.0, 731.3, 2_011.7, 9_173.9, 3e7])
    }


def _near(circle: Mapping[str, object], report: Record) -> bool:
    return metres(circle, report) < number(circle["radius"])


def _in_box(box: Mapping[str, object], r: Record) -> bool:
    is_in_lat = number(box["south"]) <= number(r["lat"]) <= number(box["north"])
    return is_in_lat and number(box["west"]) <= number(r["lon"]) <= number(box["east"])


def _per_type(type: object, world: World) -> list[Row]:
    found = [r for r in world.new if r["type"] == type]
    return [(type, len(found), max(number(r["severity"]) for r in found))] if found else []


def _enriched(type: object, world: World) -> list[Row]:
    rows: list[Row] = []
    for r in world.new:
        if r["type"] == type:
            names = [s["name"] for s in world.shelters if metres(s, r) < 1_503.7]
            rows += [(r["id"], name) for name in names] or [(r["id"],)]  # NULL is left out.
    return rows


def _near_users(user: object, world: World) -> list[Row]:
    me = [u for u in world.users if u["user_id"] == user]
    return [(r["id"], user) for u in me for r in world.new if metres(u, r) < 2_011.7]


def _worst(type: object, world: World) -> list[Row]:
    found = [r for r in world.new if r["type"] == type]
    found.sort(key=lambda r: (-number(r["severity"]), number(r["id"])))
    return [(r["id"],) for r in found[:2]]


def _busy(type: object, world: World) -> list[Row]:
    so_far = Counter(r["type"] for r in world.reports)
    return [(r["id"], so_far[type]) for r in world.new if r["type"] == type and so_far[type] > 3]


KINDS = (
    Kind(
        "equality",
        "type STRING",
        "SELECT id, severity FROM NEW Reports WHERE type = :type",
        _a_type,
        lambda a, w: [(r["id"], r["severity"]) for r in w.new if r["type"] == a["type"]],
    ),
    Kind(
        "range",
        "low DOUBLE, high DOUBLE",
        "SELECT r.id FROM NEW Reports r WHERE r.severity BETWEEN :low AND :high",
        _a_range,
        lambda a, w: [
            (r["id"],)
            for r in w.new
            if number(a["low"]) <= number(r["severity"]) <= number(a["high"])
        ],
    ),
    Kind(
        "area",
        "south DOUBLE, north DOUBLE, west DOUBLE, east DOUBLE",
        """SELECT r.id, r.type FROM NEW Reports r
        WHERE r.lat BETWEEN :south AND :north AND r.lon >= :west AND :east >= r.lon""",
        _a_box,
        lambda a, w: [(r["id"], r["type"]) for r in w.new if _in_box(a, r)],
    ),
    Kind(
        "near",
        "lat DOUBLE, lon DOUBLE, radius DOUBLE",
        """SELECT r.id FROM NEW Reports r
        WHERE distance(r.lat, r.lon, :lat, :lon) < :radius""",
        _a_circle,
        lambda a, w: [(r["id"],) for r in w.new if _near(a, r)],
    ),
    Kind(
        "near, of which many",
        "lat DOUBLE, lon DOUBLE, radius DOUBLE",
        """SELECT r.type, count(*) AS n FROM NEW Reports r
        WHERE distance(:lat, :lon, r.lat, r.lon) < :radius GROUP BY r.type HAVING n > 1""",
        _a_circle,
        lambda a, w: [
            (type, n)
            for type, n in Counter(r["type"] for r in w.new if _near(a, r)).items()
            if n > 1
        ],
    ),
    Kind(
        "near a user",
        "user STRING",
        """SELECT r.id, u.user_id AS user_id FROM NEW Reports r JOIN Users u ON u.user_id = :user
        WHERE distance(r.lat, r.lon, u.lat, u.lon) < 2011.7""",
        _a_user,
        lambda a, w: _near_users(a["user"], w),
    ),
    Kind(
        "near a user, in a query of its own",
        "user STRING, radius DOUBLE",
        """WITH me AS (SELECT * FROM Users WHERE user_id = :user)
        SELECT r.id FROM NEW Reports r JOIN me
        ON distance(r.lat, r.lon, me.lat, me.lon) <= :radius""",
        lambda random, centre: {**_a_user(random, centre), "radius": 2_011.7},
        lambda a, w: [row[:1] for row in _near_users(a["user"], w)],
    ),
    Kind(
        "aggregate",
        "type STRING",
        """SELECT :type AS type, count(*) AS n, max(severity) AS worst FROM NEW Reports
        WHERE type = :type GROUP BY :type""",
        _a_type,
        lambda a, w: _per_type(a["type"], w),
    ),
    Kind(
        "static enrichment",
        "type STRING",
        """SELECT r.id, s.name FROM NEW Reports r
        LEFT JOIN Shelters s ON distance(s.lat, s.lon, r.lat, r.lon) < 1503.7
        WHERE r.type = :type""",
        _a_type,
        lambda a, w: _enriched(a["type"], w),
    ),
    Kind(
        "the worst two",
        "type STRING",
        "SELECT id FROM NEW Reports WHERE type = :type ORDER BY severity DESC, id LIMIT 2",
        _a_type,
        lambda a, w: _worst(a["type"], w),
    ),
    Kind(
        "with all there is",
        "type STRING",
        """SELECT r.id, c.n FROM NEW Reports r
        JOIN (SELECT type, count(*) AS n FROM Reports GROUP BY type) c ON c.type = r.type
        WHERE r.type = :type AND c.n > 3""",
        _a_type,
        lambda a, w: _busy(a["type"], w),
    ),
    Kind(
        "without parameters",
        "",
        "SELECT id FROM NEW Reports WHERE severity > 1",
        lambda _, __: {},
        lambda _, w: [(r["id"],) for r in w.new if number(r["severity"]) > 1],
    ),
)
