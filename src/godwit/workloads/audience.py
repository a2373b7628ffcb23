"""BS3, the subscribers of the BAD simulation: their subscriptions, times and rates.

Paper    Nguyen, Uddin, Venkatasubramanian, DEBS 2019, section 6.2.
Stated   10 channels with periods of 5, 10, 20, 30, 60 s; 100 BE subscriptions each; rates from a
         normal distribution; 10 to 30 subscriptions for each subscriber; all log in at the
         beginning and subscribe in the first 8 minutes; every minute a quarter of the
         subscriptions is scheduled to raise its rate within 3 minutes, and to lower it 4 to 6
         minutes later.
Chosen   what the paper leaves open:
         - the mean rate is an argument; the standard deviation is a fifth of it, and no rate is
           below a twentieth;
         - a raised rate is 1.5 to 2.5 times the base rate; a subscription that is raised, or
           scheduled to be, is not picked again;
         - logins come within the first minute, subscriptions after the login, evenly;
         - subscribers pick uniformly among all BE subscriptions; each period has two channels;
         - brokers are in towns.  The n-th largest town has n^-0.8 as many people as the largest,
           who live around its centre: with ten, that gives the largest more than 2,000 of 10,000
           people and the smallest less than 500, as in figure 13 (1).

Everything follows from the generator that is passed in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Starts = npt.NDArray[np.int64]

CHANNELS = 10
PERIODS_S = (5.0, 10.0, 20.0, 30.0, 60.0)
HELD_MIN, HELD_MAX = 10, 30
LOGIN_WITHIN_S, SUBSCRIBED_BY_S = 60.0, 480.0
RATE_DEVIATION, RATE_MIN = 0.2, 0.05
RAISED_MIN, RAISED_MAX = 1.5, 2.5
PICKED_EVERY_S, PICKED_SHARE = 60.0, 0.25
RAISED_WITHIN_S, LOWERED_AFTER_S = 180.0, (240.0, 360.0)
TOWN_EXPONENT = 0.8
#: Extent of the region; standard deviation of people around the centre of their town.
REGION_DEGREES, TOWN_DEGREES = 4.0, 0.05
SOUTH, WEST = 60.0, 22.0


@dataclass(frozen=True, slots=True)
class Audience:
    broker_places: Floats
    """Latitude and longitude of each broker."""

    places: Floats
    """Latitude and longitude of each subscriber."""

    login_s: Floats
    starts: Starts
    held: Ints
    """BE subscriptions: those of subscriber i are from starts[i] to starts[i + 1]."""

    since_s: Floats
    """When each of `held` was made."""

    rates: Floats
    """Base rate of each BE subscription, in bytes per second."""

    periods_s: Floats
    """Period of the channel of each BE subscription."""


@dataclass(frozen=True, slots=True)
class RateChange:
    """From `at_s` on, a BE subscription has `factor` times its base rate."""

    at_s: float
    subscription: int
    factor: float


def audience(
    random: np.random.Generator, *, brokers: int, subscribers: int, be: int, rate_mean: float
) -> Audience:
    broker_places = np.array((SOUTH, WEST)) + random.random((brokers, 2)) * REGION_DEGREES
    people = np.arange(1, brokers + 1) ** -TOWN_EXPONENT
    town = random.choice(brokers, subscribers, p=people / people.sum())
    places = broker_places[town] + random.normal(0.0, TOWN_DEGREES, (subscribers, 2))
    login_s = random.uniform(0.0, LOGIN_WITHIN_S, subscribers)
    counts = random.integers(HELD_MIN, HELD_MAX + 1, subscribers)
    starts = np.concatenate(([0], np.cumsum(counts)))
    held = np.concatenate([random.choice(be, count, replace=False) for count in counts])
    earliest = np.repeat(login_s, counts)
    since_s = earliest + random.random(len(held)) * (SUBSCRIBED_BY_S - earliest)
    drawn = random.normal(rate_mean, RATE_DEVIATION * rate_mean, be)
    channel = np.arange(be) % CHANNELS
    return Audience(
        broker_places=broker_places,
        places=places,
        login_s=login_s,
        starts=starts.astype(np.int64),
        held=held.astype(np.int32),
        since_s=since_s,
        rates=np.maximum(drawn, RATE_MIN * rate_mean),
        periods_s=np.array(PERIODS_S)[channel % len(PERIODS_S)],
    )


def rate_changes(random: np.random.Generator, *, be: int, until_s: float) -> list[RateChange]:
    """Changes of rates, in order of time."""
    changes: list[RateChange] = []
    free_s = np.zeros(be)
    for picked_s in np.arange(PICKED_EVERY_S, until_s, PICKED_EVERY_S).tolist():
        picked = random.choice(be, round(PICKED_SHARE * be), replace=False)
        for k in picked[free_s[picked] <= picked_s].tolist():
            raised_s = picked_s + random.uniform(0.0, RAISED_WITHIN_S)
            lowered_s = raised_s + random.uniform(*LOWERED_AFTER_S)
            changes.append(RateChange(raised_s, k, random.uniform(RAISED_MIN, RAISED_MAX)))
            changes.append(RateChange(lowered_s, k, 1.0))
            free_s[k] = lowered_s
    return sorted(changes, key=lambda change: change.at_s)
