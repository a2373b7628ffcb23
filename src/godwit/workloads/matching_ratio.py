"""The workloads of cluster-based publish/subscribe (paper C, section 4: CS1 and CS2).

The matching ratio is "the fraction of the brokers that have matching subscriptions for an event",
and the paper's main parameter: 10, 50 and 70% (CS1), 25, 50 and 75% (CS2), of 100 brokers.

An event is about one of TOPICS topics ("a simple presentation of content"), drawn uniformly.
Each topic has exactly its share of the brokers, drawn for it at random, and each of these brokers
one subscription: so the ratio holds for every event, and brokers hold about as many subscriptions
as each other.

CS1   publications are uniform over brokers
CS2   Zipf: few brokers publish most.  100 publications per time unit.

Chosen where the paper is silent: 100 topics (its number of subscriptions is not given), exponent
1, which brokers publish most is drawn at random, and a time unit is a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from godwit.content.filters import Filter
from godwit.content.predicates import Operator, Predicate
from godwit.content.values import Value
from godwit.errors import UsageError
from godwit.workloads.clients import Publisher, Subscriber, publisher_at
from godwit.workloads.workload import Workload
from godwit.workloads.workload_figures import Spread, matching_brokers, spread
from godwit.workloads.zipf import zipf_weights

TOPICS = 100
PUBLICATIONS_PER_S = 100.0
UNIFORM_RATIOS = (0.10, 0.50, 0.70)
ZIPF_RATIOS = (0.25, 0.50, 0.75)
ADVERTISEMENT = Filter.parse("class = 'EVENT' and topic is present")


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioSetup:
    matching_ratio: float
    publisher_exponent: float = 0.0
    """Exponent of the Zipf distribution of publications over brokers; 0 is uniform."""

    topics: int = TOPICS
    publications_per_s: float = PUBLICATIONS_PER_S


CS1 = tuple(RatioSetup(matching_ratio=ratio) for ratio in UNIFORM_RATIOS)
CS2 = tuple(RatioSetup(matching_ratio=ratio, publisher_exponent=1.0) for ratio in ZIPF_RATIOS)


def ratio_workload(setup: RatioSetup, brokers: Sequence[str], random: Random) -> Workload:
    if not 0 <= setup.matching_ratio <= 1:
        raise UsageError(f"a matching ratio of {setup.matching_ratio}; it must be from 0 to 1")
    interested = round(setup.matching_ratio * len(brokers))
    subscribers = tuple(
        Subscriber(name=f"subscriber-{broker}-t{topic}", at=broker, filter=_about(topic))
        for topic in range(setup.topics)
        for broker in random.sample(brokers, interested)
    )
    weights = zipf_weights(len(brokers), setup.publisher_exponent)
    random.shuffle(weights)
    publishers = tuple(
        publisher_at(broker, ADVERTISEMENT, 60.0 * setup.publications_per_s * weight, random)
        for broker, weight in zip(brokers, weights, strict=True)
    )

    def content(_: Publisher) -> dict[str, Value]:
        return {"class": "EVENT", "topic": f"t{random.randrange(setup.topics)}"}

    return Workload(publishers=publishers, subscribers=subscribers, content=content)


def _about(topic: int) -> Filter:
    event = Predicate("class", Operator.EQUAL, "EVENT")
    return Filter([event, Predicate("topic", Operator.EQUAL, f"t{topic}")])


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioMeasures:
    brokers_per_publication: Spread
    subscriptions_per_broker: Spread
    busiest_tenth_share: float
    """The part of the publications that the busiest tenth of the brokers publish."""


def measured(workload: Workload, *, publications: int) -> RatioMeasures:
    rates = sorted((p.publications_per_min for p in workload.publishers), reverse=True)
    held = dict.fromkeys((p.at for p in workload.publishers), 0)
    for subscriber in workload.subscribers:
        held[subscriber.at] += 1
    return RatioMeasures(
        brokers_per_publication=matching_brokers(
            workload.subscribers, workload.sample(publications)
        ),
        subscriptions_per_broker=spread(held.values()),
        busiest_tenth_share=sum(rates[: max(1, len(rates) // 10)]) / sum(rates),
    )
