"""Stage 1, initial placement: which broker a newcomer gets, before anybody knows its interests.

Paper    Nguyen, Uddin, Venkatasubramanian, DEBS 2019, section 5.1.
Words    NR -> nearest, RR -> round_robin, RND -> at_random, LL -> least_loaded.
Departs  Least loaded is here although the paper turns it down, so that its reason can be shown:
         newcomers hold nothing yet, so a burst of them all lands on one broker (B12).
Tested   tests/balance/test_initial.py.

All return the number of a broker in the sequence they are given.  Of equals the first wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import asin, cos, radians, sin, sqrt
from random import Random

from godwit.errors import UsageError

EARTH_RADIUS_M = 6_371_008.8


class Placement(Enum):
    NEAREST = "nearest"
    ROUND_ROBIN = "round robin"
    RANDOM = "random"
    LEAST_LOADED = "least loaded"


@dataclass(frozen=True, slots=True)
class Location:
    """A place on earth, in degrees."""

    latitude: float
    longitude: float

    def __post_init__(self) -> None:
        if not (-90 <= self.latitude <= 90 and -180 <= self.longitude <= 180):
            raise UsageError(
                f"location ({self.latitude}, {self.longitude}): latitudes are -90 to 90, "
                "longitudes -180 to 180 degrees"
            )


def distance_m(a: Location, b: Location) -> float:
    """On a sphere, by the haversine, which keeps its precision when both are close."""
    up = sin(radians(b.latitude - a.latitude) / 2) ** 2
    along = sin(radians(b.longitude - a.longitude) / 2) ** 2
    half = up + cos(radians(a.latitude)) * cos(radians(b.latitude)) * along
    return 2 * EARTH_RADIUS_M * asin(min(1.0, sqrt(half)))


def nearest(location: Location, brokers: Sequence[Location]) -> int:
    _check(len(brokers))
    return min(range(len(brokers)), key=lambda j: distance_m(location, brokers[j]))


def round_robin(newcomer: int, m: int) -> int:
    """The broker of the newcomer of this number; the first is 0."""
    _check(m)
    return newcomer % m


def at_random(random: Random, m: int) -> int:
    _check(m)
    return random.randrange(m)


def least_loaded(total: Sequence[float]) -> int:
    """By the loads that were last reported: who has just come is not in them."""
    _check(len(total))
    return min(range(len(total)), key=lambda j: total[j])


def _check(m: int) -> None:
    if m < 1:
        raise UsageError("no broker to choose from")
