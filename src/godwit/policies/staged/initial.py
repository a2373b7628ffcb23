"""Stage 1, initial placement: the broker for a newcomer, before its interests are known.

Paper    Nguyen, Uddin, Venkatasubramanian, DEBS 2019, section 5.1.
Words    NR -> nearest, RR -> round_robin, RND -> at_random, LL -> least_loaded.
Departs  Least loaded is here although the paper turns it down, so that its reason can be shown:
         newcomers hold nothing yet, so a burst of them all lands on one broker (B12).
Tested   tests/policies/staged/test_initial.py.

All functions return the index of a broker in their argument.  Of equals the first is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from random import Random

from godwit.content.geography import GeoPoint, distance_m
from godwit.errors import UsageError


class Placement(Enum):
    NEAREST = "nearest"
    ROUND_ROBIN = "round robin"
    RANDOM = "random"
    LEAST_LOADED = "least loaded"


def nearest(location: GeoPoint, brokers: Sequence[GeoPoint]) -> int:
    _check(len(brokers))
    return min(range(len(brokers)), key=lambda j: distance_m(location, brokers[j]))


def round_robin(newcomer: int, m: int) -> int:
    """The broker of the newcomer with this number, from 0."""
    _check(m)
    return newcomer % m


def at_random(random: Random, m: int) -> int:
    _check(m)
    return random.randrange(m)


def least_loaded(total: Sequence[float]) -> int:
    """By the last reported loads, which do not include the latest newcomers."""
    _check(len(total))
    return min(range(len(total)), key=lambda j: total[j])


def _check(m: int) -> None:
    if m < 1:
        raise UsageError("no broker to choose from")
