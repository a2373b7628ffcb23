"""The state before a plan: MANUAL runs until all bit vectors are full, and is gathered.

Words    Lbv -> vector_length.

Profiles are recorded from deliveries, at one moment.  Publishers are gathered with the mean rate
and bandwidth of all: each sends 70 quotes a minute, of nearly the same size.  BIN PACKING sorts by
bandwidth, so with differences of a thousandth it would keep the subscribers of a stock together by
accident, and not behave as in the thesis (R3, R8).  Subscriptions are listed by broker, as brokers
answer.

A run takes minutes with thousands of subscriptions, so a
process keeps what it gathered: cases that differ in their algorithm follow each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from statistics import fmean

from godwit.content.messages import Publication, size_bytes
from godwit.experiments.allocation.deployed import deployed, initial_network
from godwit.experiments.allocation.setups import (
    MATCHING_BASE_S,
    MATCHING_PER_SUBSCRIPTION_S,
    USABLE_SHARE,
    AllocationSetup,
)
from godwit.policies.allocation.gathered import (
    Gathered,
    GatheredBroker,
    GatheredPublisher,
    GatheredSubscription,
)
from godwit.profile.bit_vector import BitVector
from godwit.profile.publisher_profile import PublisherMeters, PublisherProfile
from godwit.profile.subscription_profile import SubscriptionProfile
from godwit.simulation.observers import Observer
from godwit.workloads.clients import Publisher

#: What was gathered and is kept: so many seeds of one network.
KEPT = 4
#: After this time the last publications have been delivered.
ARRIVING_S = 10.0


class DeliveryRecording(Observer):
    """Profiles of all subscribers, by what was delivered, and of all publishers."""

    def __init__(self, vector_length: int, window_s: float) -> None:
        self.length = vector_length
        self._profiles: dict[str, SubscriptionProfile] = {}
        self.meters = PublisherMeters(window_s)

    def on_published(self, publication: Publication, now_s: float) -> None:
        self.meters.record(
            publication.publisher, publication.sequence, size_bytes(publication), now_s
        )

    def on_delivered(
        self, clients: Sequence[str], publication: Publication, hops: int, now_s: float
    ) -> None:
        publisher, sequence = publication.publisher, publication.sequence
        for client in clients:
            profile = self._profiles.get(client)
            if profile is None:
                profile = self._profiles[client] = SubscriptionProfile(self.length)
            profile.record(publisher, sequence)

    @property
    def vectors(self) -> Mapping[str, Mapping[str, BitVector]]:
        """For each client and publisher."""
        return {client: profile.vectors for client, profile in self._profiles.items()}


@lru_cache(maxsize=KEPT)
def gathered_of(setup: AllocationSetup, seed: int) -> Gathered:
    """What CROC learns of MANUAL after each publisher has filled a bit vector."""
    network = initial_network(setup)
    seen = DeliveryRecording(setup.vector_length, setup.publishing_s)
    simulator = deployed(
        network,
        setup,
        seed=seed,
        publishing_s=setup.publishing_s,
        is_sampled=False,
        observers=(seen,),
    )
    simulator.run(until_s=setup.begins_s + setup.publishing_s)
    publishing = seen.meters.profiles(simulator.now_s)
    simulator.run(until_s=simulator.now_s + ARRIVING_S)
    workload = setup.workload(seed)
    nothing: Mapping[str, BitVector] = {}
    return Gathered(
        publishers=publisher_entries(workload.publishers, publishing),
        brokers=broker_entries(setup),
        subscriptions=by_broker(
            subscription_entry(each.name, each.at, seen.vectors.get(each.name, nothing))
            for each in workload.subscribers
        ),
        vector_length=setup.vector_length,
    )


def publisher_entries(
    publishers: Sequence[Publisher], profiles: Mapping[str, PublisherProfile]
) -> tuple[GatheredPublisher, ...]:
    """All with the mean rate and bandwidth."""
    rate_per_s = fmean(each.publications_per_s for each in profiles.values())
    bandwidth_bytes_s = fmean(each.bytes_per_s for each in profiles.values())
    return tuple(
        GatheredPublisher(
            id=publisher.name,
            rate_per_s=rate_per_s,
            bandwidth_bytes_s=bandwidth_bytes_s,
            last_id=profiles[publisher.name].last_id,
            first_id=profiles[publisher.name].first_id,
            broker=publisher.at,
        )
        for publisher in publishers
    )


def by_broker(entries: Iterable[GatheredSubscription]) -> tuple[GatheredSubscription, ...]:
    return tuple(sorted(entries, key=lambda entry: (entry.broker or "", entry.id)))


def broker_entries(setup: AllocationSetup) -> tuple[GatheredBroker, ...]:
    """A broker says how much of its bandwidth may be used."""
    tree = setup.topology
    return tuple(
        GatheredBroker(
            id=broker,
            output_bandwidth_bytes_s=USABLE_SHARE * resources.output_bandwidth_bytes_s,
            matching_delay_base_s=MATCHING_BASE_S,
            matching_delay_per_subscription_s=MATCHING_PER_SUBSCRIPTION_S,
            neighbours=tree.neighbours(broker),
        )
        for broker, resources in setup.resources.items()
    )


def subscription_entry(
    name: str, broker: str, vectors: Mapping[str, BitVector]
) -> GatheredSubscription:
    """Each subscriber has one subscription, of the same name."""
    return GatheredSubscription(
        id=name,
        first_id={publisher: vector.first for publisher, vector in vectors.items()},
        bits={publisher: bits_of(vector) for publisher, vector in vectors.items()},
        broker=broker,
        client=name,
    )


def bits_of(vector: BitVector) -> str:
    """Character i says whether publication `first` + i was delivered."""
    return f"{vector.bits:b}"[::-1]
