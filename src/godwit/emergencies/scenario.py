"""How the emergency scenario is set: the paper's BS1, in less time.

Times of the paper are divided by `pace`: when people log in and subscribe, and how often channels
are executed, though these by CHANNEL_PACE_MAX at most: Spark should keep up on two cores.  People
walk, and say where they are once a second, as ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random

from godwit.workloads.emergencies import (
    LOGIN_WITHIN_S,
    SUBSCRIBED_BY_S,
    EmergencySubscriber,
    emergency_subscribers,
)
from godwit.workloads.emergency_channels import CHANNELS
from godwit.workloads.road_files import open_roads
from godwit.workloads.roads import Place, RoadMap

CHANNEL_PACE_MAX = 5.0


@dataclass(frozen=True, slots=True)
class EmergencyScenario:
    users: int = 400
    brokers: int = 5
    pace: float = 5.0
    seconds: float = 90.0
    """After everybody has subscribed."""

    reports_per_s: float = 20.0
    placement: str = "nearest"
    """Stage 1."""

    strategy: str = "sdm"
    """Stage 2: ldm or sdm."""

    alpha: float = 0.15
    beta: float = 0.0
    gamma: float = 0.5
    is_balanced: bool = True
    """Or nobody is moved: what would be is only proposed."""

    seed: int = 1
    roads: Path | None = None
    """A road map in WKT; a town of streets at right angles without one."""

    @property
    def subscribed_s(self) -> float:
        """When everybody has subscribed, from the beginning."""
        return SUBSCRIBED_BY_S / self.pace

    @property
    def login_s(self) -> float:
        return LOGIN_WITHIN_S / self.pace

    @property
    def duration_s(self) -> float:
        return self.subscribed_s + self.seconds

    def channel_statements(self) -> list[str]:
        """With shorter periods."""
        pace = min(self.pace, CHANNEL_PACE_MAX)
        return [
            channel.statement.replace(
                f"EVERY {channel.every_s} SECONDS", f"EVERY {channel.every_s / pace:g} SECONDS"
            )
            for channel in CHANNELS
        ]

    def cast(self) -> Cast:
        random = Random(self.seed)
        roads = open_roads(self.roads)
        return Cast(
            roads=roads,
            broker_places=broker_places(roads, self.brokers),
            subscribers=emergency_subscribers(random, roads, self.users),
            random=random,
        )


@dataclass(frozen=True, slots=True)
class Cast:
    roads: RoadMap
    broker_places: list[Place]
    subscribers: list[EmergencySubscriber]
    random: Random
    """For all that is drawn later."""


def broker_places(roads: RoadMap, count: int) -> list[Place]:
    """One in the middle of town, the others around it, far out: most people are nearest the first.

    The paper does not say where its brokers were; that nearest placement overloads one of them, it
    does.
    """
    latitudes = sorted(place.latitude for place in roads.places)
    longitudes = sorted(place.longitude for place in roads.places)
    middle = Place(latitudes[len(latitudes) // 2], longitudes[len(longitudes) // 2])
    corners = [
        Place(latitude, longitude)
        for latitude in (latitudes[0], latitudes[-1])
        for longitude in (longitudes[0], longitudes[-1])
    ]
    return [middle, *(corners[number % 4] for number in range(count - 1))]
