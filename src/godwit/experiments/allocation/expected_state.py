"""What is gathered of MANUAL, without running it: every filter is evaluated for every quote.

In a network that loses nothing, this is what is delivered.  It takes seconds instead of minutes, so
experiments about planning alone use it.

Tested   tests/experiments/test_allocation_runs.py: the same profiles as from a simulated network.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from statistics import fmean

from godwit.content.filters import Filter
from godwit.content.messages import HEADER_BYTES, body_bytes
from godwit.content.values import Record
from godwit.experiments.allocation.deployed import drawn
from godwit.experiments.allocation.initial_state import (
    KEPT,
    broker_entries,
    by_broker,
    publisher_entries,
    subscription_entry,
)
from godwit.experiments.allocation.setups import AllocationSetup
from godwit.policies.allocation.gathered import Gathered
from godwit.profile.bit_vector import BitVector
from godwit.profile.publisher_profile import PublisherProfile
from godwit.workloads.allocation import PUBLICATIONS_PER_MIN


@lru_cache(maxsize=KEPT)
def expected_of(setup: AllocationSetup, seed: int) -> Gathered:
    workload = setup.workload(seed)
    quotes = {
        publisher: some[: setup.vector_length] for publisher, some in drawn(workload, setup).items()
    }
    publisher_of = {publisher.subject: publisher.name for publisher in workload.publishers}
    known: dict[Filter, BitVector] = {}
    subscriptions = []
    for subscriber in workload.subscribers:
        filter = subscriber.filter
        publisher = publisher_of[str(filter.constraints["symbol"].only_value)]
        if filter not in known:
            known[filter] = _received(filter, quotes[publisher], setup.vector_length)
        vectors = {publisher: known[filter]} if known[filter] else {}
        subscriptions.append(subscription_entry(subscriber.name, subscriber.at, vectors))
    return Gathered(
        publishers=publisher_entries(
            workload.publishers,
            {each.name: _profile(each.name, quotes[each.name]) for each in workload.publishers},
        ),
        brokers=broker_entries(setup),
        subscriptions=by_broker(subscriptions),
        vector_length=setup.vector_length,
    )


def _received(filter: Filter, quotes: Sequence[Record], length: int) -> BitVector:
    return BitVector.of(
        (number for number, quote in enumerate(quotes) if filter.matches_checked(quote)),
        length=length,
    )


def _profile(publisher: str, quotes: Sequence[Record]) -> PublisherProfile:
    rate_per_s = PUBLICATIONS_PER_MIN / 60.0
    mean_bytes = fmean(HEADER_BYTES + body_bytes(quote, b"") for quote in quotes)
    return PublisherProfile(publisher, rate_per_s, rate_per_s * mean_bytes, len(quotes) - 1)
