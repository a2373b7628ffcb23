"""What clients do over time, as data that a driver plays: joins, leaves and steps of the rate.

    joins over time   LS2: all subscribers at random times, uniform over the first 500 to 1,010 s
    rate step         LS2: at a given time half of the publishers, drawn at random, double
    churn             LS4: 60 joins a minute, each stays 7 to 14 minutes; grouped-random sends
                      all joins of a minute to one random edge, individually-random each to its own

Chosen where the thesis (7.1.2) is silent: the joins of a minute come at uniform times within it,
stays are uniform, and subscribers that would leave after the end stay.  Half of an odd number
of publishers is rounded down.

A timeline is sorted by time.  The same seed gives the same timeline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import mean
from typing import TypeAlias

from godwit.content.filters import Filter
from godwit.errors import UsageError
from godwit.workloads.clients import Subscriber, check_rate

JOINS_PER_MIN = 60
STAY_S = (7 * 60.0, 14 * 60.0)


@dataclass(frozen=True, slots=True)
class Join:
    """The subscriber attaches and subscribes."""

    at_s: float
    subscriber: Subscriber


@dataclass(frozen=True, slots=True)
class Leave:
    """The subscriber of this name unsubscribes and detaches."""

    at_s: float
    subscriber: str


@dataclass(frozen=True, slots=True)
class RateStep:
    """From `at_s` on, the publisher of this name publishes at another rate."""

    at_s: float
    publisher: str
    publications_per_min: float

    def __post_init__(self) -> None:
        check_rate(self.publisher, self.publications_per_min)


Step: TypeAlias = Join | Leave | RateStep
Timeline: TypeAlias = tuple[Step, ...]


def merged(*timelines: Iterable[Step]) -> Timeline:
    """Several timelines as one.  At the same time, earlier arguments come first."""
    return tuple(sorted((s for steps in timelines for s in steps), key=lambda step: step.at_s))


def joins(
    subscribers: Iterable[Subscriber], random: Random, *, within_s: float, from_s: float = 0.0
) -> tuple[Join, ...]:
    """Each subscriber joins once, at a time uniform over `within_s` (LS2)."""
    steps = [Join(random.uniform(from_s, from_s + within_s), who) for who in subscribers]
    return tuple(sorted(steps, key=lambda step: step.at_s))


def rate_steps(
    rates_per_min: Mapping[str, float],
    random: Random,
    *,
    at_s: float,
    share: float = 0.5,
    factor: float = 2.0,
) -> tuple[RateStep, ...]:
    """At `at_s`, a share of the publishers, drawn at random, multiply their rate (LS2)."""
    chosen = random.sample(sorted(rates_per_min), int(share * len(rates_per_min)))
    return tuple(RateStep(at_s, name, factor * rates_per_min[name]) for name in sorted(chosen))


def churn(
    filter_of: Callable[[int], Filter],
    edges: Sequence[str],
    random: Random,
    *,
    minutes: int,
    grouped: bool,
    joins_per_min: int = JOINS_PER_MIN,
    stay_s: tuple[float, float] = STAY_S,
) -> Timeline:
    """Subscribers come and go for `minutes` (LS4); the n-th wants `filter_of(n)`."""
    if not edges:
        raise UsageError("churn needs at least one edge to join at")
    steps: list[Step] = []
    for minute in range(minutes):
        of_minute = random.choice(edges)
        for number in range(minute * joins_per_min, (minute + 1) * joins_per_min):
            at = of_minute if grouped else random.choice(edges)
            who = Subscriber(name=f"churn-{number}", at=at, filter=filter_of(number))
            joined_s = 60.0 * (minute + random.random())
            left_s = joined_s + random.uniform(*stay_s)
            steps.append(Join(joined_s, who))
            if left_s < 60.0 * minutes:
                steps.append(Leave(left_s, who.name))
    return merged(steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attendance:
    """What a timeline really does to the number of attached subscribers."""

    joins: int
    leaves: int
    stay_mean_s: float
    """Mean stay of the subscribers that left."""

    attached_most: int
    attached_at_end: int
    joins_by_broker: Mapping[str, int]


def attendance(timeline: Iterable[Step]) -> Attendance:
    """Measure a timeline, as an experiment records it."""
    since: dict[str, float] = {}
    stays: list[float] = []
    by_broker: dict[str, int] = {}
    most = 0
    for step in timeline:
        match step:
            case Join(at_s, who):
                since[who.name] = at_s
                by_broker[who.at] = by_broker.get(who.at, 0) + 1
                most = max(most, len(since))
            case Leave(at_s, name):
                stays.append(at_s - since.pop(name))
            case RateStep():
                pass
    return Attendance(
        joins=sum(by_broker.values()),
        leaves=len(stays),
        stay_mean_s=mean(stays) if stays else 0.0,
        attached_most=most,
        attached_at_end=len(since),
        joins_by_broker=by_broker,
    )


def aggregate_rate_per_min(
    rates_per_min: Mapping[str, float], timeline: Iterable[Step], *, at_s: float
) -> float:
    """The rate of all publishers together, after the steps up to `at_s`."""
    now = dict(rates_per_min)
    for step in timeline:
        if isinstance(step, RateStep) and step.at_s <= at_s:
            now[step.publisher] = step.publications_per_min
    return sum(now.values())
