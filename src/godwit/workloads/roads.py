"""A road map, and people who move on it: latitudes and longitudes, a place each second.

BS1 moves its people on the map of Helsinki of the ONE simulator.  `road_files.py` reads such maps;
without one, `street_grid` makes a town of streets at right angles of about the same size.

Movement is ONE's map-based walk: along a street at a steady speed; at a crossing into any street
but the one just left, and back only from a dead end.

R1  All roads hang together: of a map in pieces the largest piece is kept.
R2  Everybody is on a road at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import asin, atan, atanh, cos, cosh, degrees, radians, sin, sinh, sqrt, tanh
from random import Random

from godwit.errors import UsageError

EARTH_RADIUS_M = 6_371_008.8
#: Of the street grid: about the extent of ONE's Helsinki.
BLOCKS_EAST, BLOCKS_NORTH, BLOCK_M = 32, 24, 140.0
GRID_SOUTH, GRID_WEST = 60.15, 24.88

# Finland's KKJ, zone 2: transverse Mercator at 24 degrees east on Hayford's ellipsoid.
KKJ_MERIDIAN, KKJ_EASTING_M = 24.0, 2_500_000.0
HAYFORD_M, HAYFORD_FLATTENING = 6_378_388.0, 1 / 297


@dataclass(frozen=True, slots=True)
class Place:
    """In degrees."""

    latitude: float
    longitude: float


def metres_between(a: Place, b: Place) -> float:
    """On a plane at a's latitude: good for streets."""
    north = radians(b.latitude - a.latitude)
    east = radians(b.longitude - a.longitude) * cos(radians(a.latitude))
    return EARTH_RADIUS_M * sqrt(north * north + east * east)


def kkj_place(east_m: float, north_m: float) -> Place:
    """Coordinates of KKJ zone 2 as degrees, by Krueger's series.

    They stay degrees of KKJ, which differ from those of GPS by up to 150 m: nobody steers by them.
    """
    n = HAYFORD_FLATTENING / (2 - HAYFORD_FLATTENING)
    radius_m = HAYFORD_M / (1 + n) * (1 + n**2 / 4 + n**4 / 64)
    up, along = north_m / radius_m, (east_m - KKJ_EASTING_M) / radius_m
    xi, eta = up, along
    for order, h in ((1, n / 2 - 2 * n**2 / 3), (2, n**2 / 48)):
        xi -= h * sin(2 * order * up) * cosh(2 * order * along)
        eta -= h * cos(2 * order * up) * sinh(2 * order * along)
    conformal = asin(sin(xi) / cosh(eta))
    eccentricity = sqrt(HAYFORD_FLATTENING * (2 - HAYFORD_FLATTENING))
    latitude = conformal
    for _ in range(6):  # From the conformal to the geographic latitude; it converges at once.
        isometric = atanh(sin(conformal)) + eccentricity * atanh(eccentricity * sin(latitude))
        latitude = asin(tanh(isometric))
    longitude = KKJ_MERIDIAN + degrees(atan(sinh(eta) / cos(xi)))
    return Place(degrees(latitude), longitude)


class RoadMap:
    """Places, and which of them are joined by a straight piece of road."""

    def __init__(self, roads: Iterable[Sequence[Place]]) -> None:
        neighbours: dict[Place, dict[Place, None]] = {}
        for road in roads:
            for a, b in pairwise(road):
                if a != b:
                    neighbours.setdefault(a, {})[b] = None
                    neighbours.setdefault(b, {})[a] = None
        connected = _largest_piece(neighbours)
        if not connected:
            raise UsageError("a road map needs a road")
        self.neighbours = {place: tuple(neighbours[place]) for place in connected}
        self.places = tuple(self.neighbours)

    def random_place(self, random: Random) -> Place:
        """An end or a bend of a road."""
        return random.choice(self.places)


def _largest_piece(neighbours: dict[Place, dict[Place, None]]) -> list[Place]:
    largest: list[Place] = []
    seen: set[Place] = set()
    for start in neighbours:
        if start in seen:
            continue
        seen.add(start)
        piece = [start]
        for place in piece:  # It grows meanwhile.
            new = [other for other in neighbours[place] if other not in seen]
            seen.update(new)
            piece.extend(new)
        if len(piece) > len(largest):
            largest = piece
    return largest


def street_grid(
    east: int = BLOCKS_EAST, north: int = BLOCKS_NORTH, block_m: float = BLOCK_M
) -> RoadMap:
    """A town of so many blocks."""
    up = degrees(block_m / EARTH_RADIUS_M)
    along = up / cos(radians(GRID_SOUTH))
    corners = [
        [Place(GRID_SOUTH + row * up, GRID_WEST + column * along) for column in range(east + 1)]
        for row in range(north + 1)
    ]
    return RoadMap([*corners, *zip(*corners, strict=True)])


class Walker:
    """Somebody on the map: `step` moves them on."""

    def __init__(self, roads: RoadMap, random: Random, speed_m_per_s: float) -> None:
        self._roads, self._random, self._speed_m_per_s = roads, random, speed_m_per_s
        self._behind = roads.random_place(random)
        self._ahead = random.choice(roads.neighbours[self._behind])
        self._walked_m = 0.0
        self._length_m = metres_between(self._behind, self._ahead)

    def step(self, seconds: float = 1.0) -> Place:
        """Where they are after that time."""
        self._walked_m += self._speed_m_per_s * seconds
        while self._walked_m >= self._length_m:
            self._walked_m -= self._length_m
            self._turn()
        share = self._walked_m / self._length_m
        return Place(
            self._behind.latitude + share * (self._ahead.latitude - self._behind.latitude),
            self._behind.longitude + share * (self._ahead.longitude - self._behind.longitude),
        )

    def _turn(self) -> None:
        at = self._ahead
        onward = [place for place in self._roads.neighbours[at] if place != self._behind]
        self._behind, self._ahead = at, self._random.choice(onward) if onward else self._behind
        self._length_m = metres_between(self._behind, self._ahead)


def walkers(
    roads: RoadMap, random: Random, count: int, speeds_m_per_s: tuple[float, float]
) -> Iterator[Walker]:
    """So many, each with a speed of its own between these two."""
    for _ in range(count):
        yield Walker(roads, random, random.uniform(*speeds_m_per_s))
