"""A road map, and walkers on it: latitudes and longitudes, a place each second.

BS1 uses the map of Helsinki of the ONE simulator.  `road_files.py` reads such maps;
without one, `street_grid` makes a town of streets at right angles of about the same size.

Movement is ONE's map-based walk: along a street at a steady speed; at a crossing into any street
but the one just left, and back only from a dead end.

R1  All roads are connected: of a map in pieces the largest piece is kept.
R2  A walker is on a road at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import asin, atan, atanh, cos, cosh, degrees, radians, sin, sinh, sqrt, tanh
from random import Random

from godwit.content.geography import EARTH_RADIUS_M, GeoPoint, plane_distance_m
from godwit.errors import UsageError

#: The street grid has about the extent of ONE's Helsinki.
BLOCKS_EAST, BLOCKS_NORTH, BLOCK_M = 32, 24, 140.0
GRID_SOUTH, GRID_WEST = 60.15, 24.88

# Finland's KKJ, zone 2: transverse Mercator at 24 degrees east on Hayford's ellipsoid.
KKJ_MERIDIAN, KKJ_EASTING_M = 24.0, 2_500_000.0
HAYFORD_M, HAYFORD_FLATTENING = 6_378_388.0, 1 / 297


def kkj_place(east_m: float, north_m: float) -> GeoPoint:
    """Coordinates of KKJ zone 2 as degrees, by Krueger's series.

    They remain degrees of KKJ, which differ from those of GPS by up to 150 m; that does not matter
    here.
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
    return GeoPoint(degrees(latitude), longitude)


class RoadMap:
    """Places, and which of them are joined by a straight piece of road."""

    def __init__(self, roads: Iterable[Sequence[GeoPoint]]) -> None:
        neighbours: dict[GeoPoint, dict[GeoPoint, None]] = {}
        for road in roads:
            for a, b in pairwise(road):
                if a != b:
                    neighbours.setdefault(a, {})[b] = None
                    neighbours.setdefault(b, {})[a] = None
        connected = _largest_piece(neighbours)
        if not connected:
            raise UsageError("a road map needs at least one road")
        self.neighbours = {place: tuple(neighbours[place]) for place in connected}
        self.places = tuple(self.neighbours)

    def random_place(self, random: Random) -> GeoPoint:
        """An end or a bend of a road."""
        return random.choice(self.places)


def _largest_piece(neighbours: dict[GeoPoint, dict[GeoPoint, None]]) -> list[GeoPoint]:
    largest: list[GeoPoint] = []
    seen: set[GeoPoint] = set()
    for start in neighbours:
        if start in seen:
            continue
        seen.add(start)
        piece = [start]
        for place in piece:  # It grows during the loop.
            new = [other for other in neighbours[place] if other not in seen]
            seen.update(new)
            piece.extend(new)
        if len(piece) > len(largest):
            largest = piece
    return largest


def street_grid(
    east: int = BLOCKS_EAST, north: int = BLOCKS_NORTH, block_m: float = BLOCK_M
) -> RoadMap:
    """A town of `east` times `north` blocks."""
    up = degrees(block_m / EARTH_RADIUS_M)
    along = up / cos(radians(GRID_SOUTH))
    corners = [
        [GeoPoint(GRID_SOUTH + row * up, GRID_WEST + column * along) for column in range(east + 1)]
        for row in range(north + 1)
    ]
    return RoadMap([*corners, *zip(*corners, strict=True)])


class Walker:
    """Moves along the roads, `step` by `step`."""

    def __init__(self, roads: RoadMap, random: Random, speed_m_per_s: float) -> None:
        self._roads, self._random, self._speed_m_per_s = roads, random, speed_m_per_s
        self._behind = roads.random_place(random)
        self._ahead = random.choice(roads.neighbours[self._behind])
        self._walked_m = 0.0
        self._length_m = plane_distance_m(self._behind, self._ahead)

    def step(self, seconds: float = 1.0) -> GeoPoint:
        """The place after that time."""
        self._walked_m += self._speed_m_per_s * seconds
        while self._walked_m >= self._length_m:
            self._walked_m -= self._length_m
            self._turn()
        share = self._walked_m / self._length_m
        return GeoPoint(
            self._behind.latitude + share * (self._ahead.latitude - self._behind.latitude),
            self._behind.longitude + share * (self._ahead.longitude - self._behind.longitude),
        )

    def _turn(self) -> None:
        at = self._ahead
        onward = [place for place in self._roads.neighbours[at] if place != self._behind]
        self._behind, self._ahead = at, self._random.choice(onward) if onward else self._behind
        self._length_m = plane_distance_m(self._behind, self._ahead)


def walkers(
    roads: RoadMap, random: Random, count: int, speeds_m_per_s: tuple[float, float]
) -> Iterator[Walker]:
    """Walkers, each with a speed drawn from this range."""
    for _ in range(count):
        yield Walker(roads, random, random.uniform(*speeds_m_per_s))
