"""Publiy's synthetic datasets (paper M, section 7: DT1 to DT5 and DT-C): Zipf popularity.

A subscription is about one topic, drawn with Zipf popularity, at a broker drawn uniformly; a
publication is about one topic.  What characterises a dataset is how many brokers have a matching
subscription for a publication: 9.7 of 120 in the sparse DT1 and 28.7 in the dense DT2 (348,000
and 1,034,000 deliveries of 36,000 publications; at 3,600 msg/min, erratum E30).  The number of
topics follows from it: the fewer, the denser.

without covering   topic = 't7', x > a, x < a + 1     windows of one width: none covers another
with covering      topic = 't7'                       5%
                   topic = 't7', x > u               35%
                   topic = 't7', x > u, y > v        60%: specific ones have more predicates

Chosen where the paper is silent, as its figure 8 is lost: the exponent is 1, on the side of the
subscriptions (it cites the popularity of RSS feeds); publications are uniform over topics and
publishers, of which each broker has one; DT1's 6,500 subscriptions in every dataset; DT3 and
DT-C have DT1's share of matching brokers, DT4 the same and DT5 that of DT2, for DT5 congests
more; the shares of DT-C's three kinds, above.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from statistics import mean

from godwit.content.filters import Filter
from godwit.content.predicates import Operator, Predicate
from godwit.content.values import Value
from godwit.errors import UsageError
from godwit.workloads.clients import Publisher, Subscriber, publisher_at
from godwit.workloads.workload import Workload
from godwit.workloads.workload_figures import Spread, matching_brokers

ADVERTISEMENT = Filter.parse(
    "class = 'ZIPF' and topic is present and x is present and y is present"
)
#: With covering: the shares of subscriptions with no, one and two bounds beside the topic.
BOUNDS_SHARES = (0.05, 0.35, 0.60)
#: Without covering: x is uniform over [0, 1), a window begins uniformly in [-1, 1) and is 1 wide,
#: so every window has the same chance to match, whatever x is.
WINDOW_CHANCE = 0.5
_GRID = tuple((i + 0.5) / 6 for i in range(6))


@dataclass(frozen=True, slots=True, kw_only=True)
class ZipfSetup:
    brokers_per_publication: float
    subscriptions: int = 6500
    exponent: float = 1.0
    covering: bool = False
    publications_per_min: float = 3600.0
    """Rate of all publishers together."""


DT1 = ZipfSetup(brokers_per_publication=9.7)
DT2 = ZipfSetup(brokers_per_publication=28.7)
#: For the 250 brokers of C2.
DT3 = ZipfSetup(brokers_per_publication=20.2, publications_per_min=72_000.0)
#: For the 21 brokers of PlanetLab.
DT4 = ZipfSetup(brokers_per_publication=1.7, publications_per_min=3300.0)
DT5 = ZipfSetup(brokers_per_publication=5.0, publications_per_min=3300.0)
#: For the 500 brokers of C3.
DT_C = ZipfSetup(brokers_per_publication=40.4, covering=True)


def zipf_weights(count: int, exponent: float) -> list[float]:
    """The chances of the first, second ... of `count` things by popularity; they sum up to 1."""
    raw = [rank**-exponent for rank in range(1, count + 1)]
    total = sum(raw)
    return [weight / total for weight in raw]


def expected_brokers(setup: ZipfSetup, brokers: int, topics: int) -> float:
    """How many brokers have a matching subscription for a publication, on average over seeds."""
    chances = _chances(setup)
    misses = (
        (1 - weight * chance / brokers) ** setup.subscriptions
        for weight in zipf_weights(topics, setup.exponent)
        for chance in chances
    )
    return brokers * (1 - mean(misses))


def topics_for(setup: ZipfSetup, brokers: int) -> int:
    """The number of topics that gives the dataset its matching brokers per publication."""
    wanted = setup.brokers_per_publication
    densest = expected_brokers(setup, brokers, 1)
    if not 0 < wanted <= densest:
        raise UsageError(
            f"{wanted} matching brokers per publication; with {setup.subscriptions} subscriptions"
            f" at {brokers} brokers it can be more than 0 and at most {densest:.1f}"
        )
    high = 2
    while expected_brokers(setup, brokers, high) > wanted:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        enough = expected_brokers(setup, brokers, middle) >= wanted
        low, high = (middle, high) if enough else (low, middle)
    return min(
        (low, high), key=lambda topics: abs(expected_brokers(setup, brokers, topics) - wanted)
    )


def zipf_workload(setup: ZipfSetup, brokers: Sequence[str], random: Random) -> Workload:
    topics = topics_for(setup, len(brokers))
    drawn = _drawn_topics(setup, topics, random)
    subscribers = tuple(
        Subscriber(
            name=f"subscriber-{number}",
            at=random.choice(brokers),
            filter=_filter(topic, random, covering=setup.covering),
        )
        for number, topic in enumerate(drawn)
    )
    publishers = tuple(
        publisher_at(broker, ADVERTISEMENT, setup.publications_per_min / len(brokers), random)
        for broker in brokers
    )
    return Workload(
        publishers=publishers, subscribers=subscribers, content=_content(topics, random)
    )


def _drawn_topics(setup: ZipfSetup, topics: int, random: Random) -> list[int]:
    bounds = list(accumulate(zipf_weights(topics, setup.exponent)))
    return random.choices(range(1, topics + 1), cum_weights=bounds, k=setup.subscriptions)


def _filter(topic: int, random: Random, *, covering: bool) -> Filter:
    about = [
        Predicate("class", Operator.EQUAL, "ZIPF"),
        Predicate("topic", Operator.EQUAL, f"t{topic}"),
    ]
    if not covering:
        begin = random.uniform(-1, 1)
        return Filter(
            [
                *about,
                Predicate("x", Operator.ABOVE, begin),
                Predicate("x", Operator.BELOW, begin + 1),
            ]
        )
    bounds = random.choices((0, 1, 2), BOUNDS_SHARES)[0]
    above = (Predicate(name, Operator.ABOVE, random.random()) for name in ("x", "y")[:bounds])
    return Filter([*about, *above])


def _chances(setup: ZipfSetup) -> Sequence[float]:
    """The chance that a subscription on the right topic matches, for equally likely x and y."""
    if not setup.covering:
        return (WINDOW_CHANCE,)
    none, one, two = BOUNDS_SHARES
    return [none + one * x + two * x * y for x in _GRID for y in _GRID]


def _content(topics: int, random: Random) -> Callable[[Publisher], dict[str, Value]]:
    def content(_: Publisher) -> dict[str, Value]:
        topic = f"t{random.randint(1, topics)}"
        return {"class": "ZIPF", "topic": topic, "x": random.random(), "y": random.random()}

    return content


def measured(workload: Workload, *, publications: int) -> Spread:
    """How many brokers have a matching subscription for a publication.

    `workload_figures.covering_share` gives the share of covered subscriptions.
    """
    return matching_brokers(workload.subscribers, workload.sample(publications))
