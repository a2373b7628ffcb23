"""BS1, the emergency scenario: users who move, reports, shelters, and subscriptions to channels.

Paper    Nguyen, Uddin, Venkatasubramanian, DEBS 2019, section 6.1.2.
Stated   A place a second from each user; eight publishers who cross the town rapidly and make about
         10,000 reports of eight types in 30 minutes, of 200 to 700 bytes; about 200 shelters;
         seven channels; each subscriber takes 1 to 5 channels and makes 1 to 3 subscriptions to
         each; logins in the first 4 minutes, subscriptions in the next 4; about 600 BE and 2,200 FE
         subscriptions of 400 subscribers.
Chosen   what the paper leaves open: users walk at 0.5 to 1.5 m/s, publishers drive at 10 to 20 m/s;
         reports come at random (Poisson); severities are 1 to 5; subscribers ask about 30 areas,
         drawn uniformly, and for events near themselves once: this gives the stated counts.

Everything is drawn from the generator that is passed in, in order of time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import msgspec

from godwit.content.geography import GeoPoint
from godwit.content.values import Record, Value
from godwit.workloads.emergency_channels import (
    CHANNELS,
    EMERGENCY,
    LOCATION,
    Argument,
    EmergencyChannel,
)
from godwit.workloads.roads import RoadMap, walkers

TYPES = ("accident", "fire", "flood", "storm", "earthquake", "shooting", "riot", "gas leak")
PUBLISHERS = 8
REPORTS, DURATION_S = 10_000, 1_800.0
REPORT_BYTES = (200, 700)
SHELTERS, AREAS = 200, 30
WALKING_M_PER_S, DRIVING_M_PER_S = (0.5, 1.5), (10.0, 20.0)
CHANNELS_EACH, SUBSCRIPTIONS_EACH = (1, 5), (1, 3)
LOGIN_WITHIN_S, SUBSCRIBED_BY_S = 240.0, 480.0
_WORDS = (
    "help", "needed", "street", "closed", "people", "water", "smoke", "road", "crew", "arrives",
    "please", "avoid", "area", "now",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Published:
    """At `at_s`, `publisher` publishes `record`."""

    at_s: float
    publisher: str
    record: Record


@dataclass(frozen=True, slots=True)
class EmergencySubscription:
    at_s: float
    channel: str
    arguments: tuple[Value, ...]
    """In the order of the channel's parameters."""


@dataclass(frozen=True, slots=True)
class EmergencySubscriber:
    user: str
    place: GeoPoint
    """Place at the login."""

    login_s: float
    subscriptions: tuple[EmergencySubscription, ...]
    """In order of time."""


def user_names(count: int) -> tuple[str, ...]:
    return tuple(f"user-{number:04d}" for number in range(1, count + 1))


def user_locations(
    random: Random, roads: RoadMap, users: int, *, until_s: float, start_s: float = 0.0
) -> Iterator[Published]:
    """A place of each user every second.  `at` counts from `start_s`."""
    people = list(
        zip(user_names(users), walkers(roads, random, users, WALKING_M_PER_S), strict=True)
    )
    second = 0
    while second < until_s:
        for user, walker in people:
            place = walker.step()
            yield Published(float(second), user, {
                "class": LOCATION, "user_id": user, "latitude": place.latitude,
                "longitude": place.longitude, "at": start_s + second,
            })  # fmt: skip
        second += 1


def emergency_reports(
    random: Random,
    roads: RoadMap,
    *,
    until_s: float,
    start_s: float = 0.0,
    per_s: float = REPORTS / DURATION_S,
) -> Iterator[Published]:
    """Reports of eight publishers who drive through the town."""
    drivers = list(walkers(roads, random, PUBLISHERS, DRIVING_M_PER_S))
    last_s = [0.0] * PUBLISHERS
    at_s, number = random.expovariate(per_s), 0
    while at_s < until_s:
        number += 1
        who = random.randrange(PUBLISHERS)
        place = drivers[who].step(at_s - last_s[who])
        last_s[who] = at_s
        yield Published(
            at_s, f"responder-{who + 1}", _report(random, number, place, start_s + at_s)
        )
        at_s += random.expovariate(per_s)


def _report(random: Random, number: int, place: GeoPoint, at_s: float) -> Record:
    """A report whose size as JSON is drawn uniformly from REPORT_BYTES."""
    record: dict[str, Value] = {
        "class": EMERGENCY, "report_id": f"report-{number:06d}", "etype": random.choice(TYPES),
        "severity": random.randint(1, 5), "latitude": place.latitude, "longitude": place.longitude,
        "at": round(at_s, 3), "message": "",
    }  # fmt: skip
    missing = random.randint(*REPORT_BYTES) - len(msgspec.json.encode(record))
    text = " ".join(random.choices(_WORDS, k=missing // 4 + 1)) if missing > 0 else ""
    return {**record, "message": text[:missing].ljust(missing, ".") if missing > 0 else ""}


def shelters(random: Random, roads: RoadMap, count: int = SHELTERS) -> list[Record]:
    found: list[Record] = []
    for number in range(1, count + 1):
        place = roads.random_place(random)
        found.append({
            "shelter_id": f"shelter-{number:03d}", "name": f"Shelter {number}",
            "latitude": place.latitude, "longitude": place.longitude,
            "beds": random.randrange(20, 500, 10),
        })  # fmt: skip
    return found


def emergency_subscribers(
    random: Random, roads: RoadMap, count: int, *, areas: int = AREAS
) -> list[EmergencySubscriber]:
    asked_about = [roads.random_place(random) for _ in range(areas)]
    found = []
    for user in user_names(count):
        login_s = random.uniform(0.0, LOGIN_WITHIN_S)
        subscriptions = [
            EmergencySubscription(
                random.uniform(LOGIN_WITHIN_S, SUBSCRIBED_BY_S), channel.name, arguments
            )
            for channel in random.sample(CHANNELS, random.randint(*CHANNELS_EACH))
            for arguments in _arguments(random, channel, user, asked_about)
        ]
        subscriptions.sort(key=lambda subscription: subscription.at_s)
        place = roads.random_place(random)
        found.append(EmergencySubscriber(user, place, login_s, tuple(subscriptions)))
    return found


def _arguments(
    random: Random, channel: EmergencyChannel, user: str, areas: list[GeoPoint]
) -> list[tuple[Value, ...]]:
    """Arguments of a subscriber's subscriptions to a channel; their number is drawn, all differ."""
    wanted = random.randint(*SUBSCRIPTIONS_EACH)
    if channel.asks_for == (Argument.USER,):
        wanted = 1  # The only argument is the user itself.
    found: dict[tuple[Value, ...], None] = {}
    while len(found) < wanted:
        arguments: list[Value] = []
        for asked in channel.asks_for:
            if asked is Argument.TYPE:
                arguments.append(random.choice(TYPES))
            elif asked is Argument.AREA:
                area = random.choice(areas)
                arguments += [area.latitude, area.longitude]
            else:
                arguments.append(user)
        found[tuple(arguments)] = None
    return list(found)
