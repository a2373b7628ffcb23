"""Places on earth, and how far apart they are.

Distances are on a sphere of the earth's mean radius.  datacluster/sql/grid.py has the formula of
`distance_m` again, as a Spark expression.
"""

from __future__ import annotations

from math import asin, cos, radians, sin, sqrt
from typing import Annotated, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from godwit.errors import UsageError

#: The mean radius of the IUGG: (2a + b) / 3 of WGS 84's ellipsoid.
EARTH_RADIUS_M = 6_371_008.8

_Degrees: TypeAlias = NDArray[np.float64]


class GeoPoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A place on earth, in degrees."""

    latitude: Annotated[float, msgspec.Meta(ge=-90, le=90)]
    longitude: Annotated[float, msgspec.Meta(ge=-180, le=180)]

    def __post_init__(self) -> None:
        """For points made in Python code; decoding checks the bounds above."""
        if not (-90 <= self.latitude <= 90 and -180 <= self.longitude <= 180):
            raise UsageError(
                f"location ({self.latitude}, {self.longitude}): latitudes are -90 to 90, "
                "longitudes -180 to 180 degrees"
            )


def distance_m(a: GeoPoint, b: GeoPoint) -> float:
    """Along a great circle, by the haversine formula, which is precise for short distances too."""
    up = sin(radians(b.latitude - a.latitude) / 2) ** 2
    along = sin(radians(b.longitude - a.longitude) / 2) ** 2
    half = up + cos(radians(a.latitude)) * cos(radians(b.latitude)) * along
    return 2 * EARTH_RADIUS_M * asin(min(1.0, sqrt(half)))


def distances_m(
    latitude: _Degrees, longitude: _Degrees, to_latitude: _Degrees, to_longitude: _Degrees
) -> NDArray[np.float64]:
    """`distance_m` over arrays.  The last bits may differ: NumPy has its own sine."""
    up = np.sin(np.radians(to_latitude - latitude) / 2) ** 2
    along = np.sin(np.radians(to_longitude - longitude) / 2) ** 2
    half = up + np.cos(np.radians(latitude)) * np.cos(np.radians(to_latitude)) * along
    found: NDArray[np.float64] = 2 * EARTH_RADIUS_M * np.arcsin(np.minimum(1.0, np.sqrt(half)))
    return found


def plane_distance_m(a: GeoPoint, b: GeoPoint) -> float:
    """On a plane that touches the earth at a's latitude: close enough for streets, and cheaper."""
    north = radians(b.latitude - a.latitude)
    east = radians(b.longitude - a.longitude) * cos(radians(a.latitude))
    return EARTH_RADIUS_M * sqrt(north * north + east * east)
