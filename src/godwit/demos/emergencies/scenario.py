"""The parameters of the emergency scenario: the paper's BS1, in less time.

The paper's times are divided by `pace`: the times of logins and subscriptions, and the periods of
channels, these by CHANNEL_PACE_MAX at most so that Spark keeps up on two cores.  Subscribers walk
at their usual speed and publish their location once a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random

from godwit.content.geography import GeoPoint
from godwit.workloads.emergencies import (
    LOGIN_WITHIN_S,
    SUBSCRIBED_BY_S,
    EmergencySubscriber,
    emergency_subscribers,
)
from godwit.workloads.emergency_channels import CHANNELS
from godwit.workloads.road_files import open_roads
from godwit.workloads.roads import RoadMap

CHANNEL_PACE_MAX = 5.0


@dataclass(frozen=True, slots=True)
class EmergencyScenario:
    users: int = 400
    brokers: int = 5
    pace: float = 5.0
    seconds: float = 90.0
    """Duration after all have subscribed."""

    reports_per_s: float = 20.0
    placement: str = "nearest"
    """Stage 1."""

    strategy: str = "sdm"
    """Stage 2: ldm or sdm."""

    alpha: float = 0.15
    beta: float = 0.0
    gamma: float = 0.5
    is_balanced: bool = True
    """If false, the coordinator proposes moves and makes none (`--dry-run`)."""

    seed: int = 1
    roads: Path | None = None
    """A road map in WKT; default: streets at right angles."""

    @property
    def subscribed_s(self) -> float:
        """When all have subscribed, from the start."""
        return SUBSCRIBED_BY_S / self.pace

    @property
    def login_s(self) -> float:
        return LOGIN_WITHIN_S / self.pace

    @property
    def duration_s(self) -> float:
        return self.subscribed_s + self.seconds

    def channel_statements(self) -> list[str]:
        """The channels, with shorter periods."""
        pace = min(self.pace, CHANNEL_PACE_MAX)
        return [
            channel.statement.replace(
                f"EVERY {channel.every_s} SECONDS", f"EVERY {channel.every_s / pace:g} SECONDS"
            )
            for channel in CHANNELS
        ]

    def town(self) -> Town:
        """Everything that follows from the seed."""
        random = Random(self.seed)
        roads = open_roads(self.roads)
        return Town(
            roads=roads,
            broker_places=broker_places(roads, self.brokers),
            subscribers=emergency_subscribers(random, roads, self.users),
            random=random,
        )


@dataclass(frozen=True, slots=True)
class Town:
    """Roads, brokers' places and subscribers."""

    roads: RoadMap
    broker_places: list[GeoPoint]
    subscribers: list[EmergencySubscriber]
    random: Random
    """The generator, for everything that is drawn later."""


def broker_places(roads: RoadMap, count: int) -> list[GeoPoint]:
    """One in the middle of town, the others at its corners: most subscribers are nearest the first.

    The paper does not state the places, but says that nearest placement overloads one broker.
    """
    latitudes = sorted(place.latitude for place in roads.places)
    longitudes = sorted(place.longitude for place in roads.places)
    middle = GeoPoint(latitudes[len(latitudes) // 2], longitudes[len(longitudes) // 2])
    corners = [
        GeoPoint(latitude, longitude)
        for latitude in (latitudes[0], latitudes[-1])
        for longitude in (longitudes[0], longitudes[-1])
    ]
    return [middle, *(corners[number % 4] for number in range(count - 1))]
