"""From the gathered document to packed profiles: checks, and the common window of a publisher.

Paper    Cheung, thesis 6.1.2: "the last piece of data is used for synchronizing the message ID
         counter in all bit vectors that correspond to the same publisher".
Words    lastId - Lbv + 1 -> the first id of `window`.
Departs  1. A publisher that has sent fewer publications than a vector has bits has a shorter window
            (open in the thesis): it begins with its first id.
         2. Vectors of publishers that have left are dropped, as are bits outside the window.
Tested   tests/policies/allocation/test_reading.py.

An error names the entry, the field, the value and the rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

import numpy as np

from godwit.errors import UsageError
from godwit.policies.allocation.capacity import BrokerCapacity
from godwit.policies.allocation.gathered import (
    Gathered,
    GatheredBroker,
    GatheredPublisher,
    GatheredSubscription,
)
from godwit.policies.allocation.packed_profiles import (
    EMPTY,
    PackedProfile,
    PublisherTable,
    Words,
    union,
)
from godwit.profile.bit_vector import LENGTH, LENGTH_MAX
from godwit.profile.matching_delay import MatchingDelay


@dataclass(frozen=True, slots=True)
class SubscriberProfile:
    """A client, or a subscription whose client is not named, and what it received."""

    name: str
    subscriptions: tuple[str, ...]
    profile: PackedProfile
    broker: str | None
    """Where it is now; None if it is not known."""


@dataclass(frozen=True, slots=True)
class AllocationProblem:
    """All that the algorithms work on."""

    table: PublisherTable
    brokers: tuple[BrokerCapacity, ...]
    """The most capable first; of equals the lower id."""

    subscribers: tuple[SubscriberProfile, ...]
    neighbours: Mapping[str, tuple[str, ...]]
    """The links between brokers now, as far as they are known."""

    @property
    def subscriptions(self) -> int:
        return sum(len(subscriber.subscriptions) for subscriber in self.subscribers)


def read(gathered: Gathered, *, compensate: bool | None = None) -> AllocationProblem:
    """The problem of a document.  `compensate` None: if vectors are shorter than the thesis's."""
    if not 1 <= gathered.vector_length <= LENGTH_MAX:
        raise UsageError(
            f"vector_length is {gathered.vector_length}; it must be 1 to {LENGTH_MAX:,}"
        )
    for kind, entries in (
        ("publishers", gathered.publishers),
        ("brokers", gathered.brokers),
        ("subscriptions", gathered.subscriptions),
    ):
        _check_ids(kind, [entry.id for entry in entries])
    windows = _windows(gathered)
    brokers = sorted(map(_broker, gathered.brokers), key=lambda broker: broker.order)
    short = gathered.vector_length < LENGTH
    publishers = gathered.publishers
    table = PublisherTable(
        ids=tuple(publisher.id for publisher in publishers),
        rates_per_s=tuple(publisher.rate_per_s for publisher in publishers),
        bandwidths_bytes_s=tuple(publisher.bandwidth_bytes_s for publisher in publishers),
        lengths=tuple(len(windows[publisher.id]) for publisher in publishers),
        vector_length=gathered.vector_length,
        compensate=short if compensate is None else compensate,
        brokers=tuple(publisher.broker for publisher in publishers),
        clients=tuple(publisher.client for publisher in publishers),
    )
    return AllocationProblem(
        table,
        tuple(brokers),
        _subscribers(gathered, table, windows),
        {broker.id: broker.neighbours for broker in gathered.brokers},
    )


# -- checks ------------------------------------------------------------------------------------


def _check_ids(kind: str, ids: list[str]) -> None:
    for place, name in enumerate(ids):
        if not name:
            raise UsageError(f"{kind}[{place}]: id is empty; each entry needs a name")
    for name, times in Counter(ids).items():
        if times > 1:
            raise UsageError(f"{kind}: id {name!r} occurs {times} times; ids must be unique")


def _check_number(where: str, field: str, value: float) -> None:
    if not (isfinite(value) and value >= 0):
        raise UsageError(f"{where}: {field} is {value}; it must be a finite number, 0 or more")


def _broker(broker: GatheredBroker) -> BrokerCapacity:
    where = f"broker {broker.id!r}"
    for field in ("output_bandwidth_bytes_s", "matching_delay_per_subscription_s"):
        _check_number(where, field, getattr(broker, field))
    if not isfinite(broker.matching_delay_base_s):  # A fitted line may cross zero.
        value = broker.matching_delay_base_s
        raise UsageError(f"{where}: matching_delay_base_s is {value}; it must be a finite number")
    delay = MatchingDelay(broker.matching_delay_per_subscription_s, broker.matching_delay_base_s)
    return BrokerCapacity(broker.id, broker.output_bandwidth_bytes_s, delay)


# -- windows -----------------------------------------------------------------------------------


def _windows(gathered: Gathered) -> dict[str, range]:
    """The message ids that all vectors of a publisher have in common, up to the last one."""
    earliest: dict[str, int] = {}
    for subscription in gathered.subscriptions:
        for publisher, first in subscription.first_id.items():
            if first < 0:
                raise UsageError(
                    f"subscription {subscription.id!r}: first_id of publisher {publisher!r} is "
                    f"{first}; it must be 0 or more"
                )
            if publisher in subscription.bits:
                earliest[publisher] = min(first, earliest.get(publisher, first))
    return {
        p.id: _window(p, earliest.get(p.id), gathered.vector_length) for p in gathered.publishers
    }


def _window(publisher: GatheredPublisher, earliest: int | None, length: int) -> range:
    where = f"publisher {publisher.id!r}"
    for field in ("rate_per_s", "bandwidth_bytes_s"):
        _check_number(where, field, getattr(publisher, field))
    if publisher.last_id < -1:  # Before the first publication it is -1.
        raise UsageError(f"{where}: last_id is {publisher.last_id}; it must be 0 or more")
    first = publisher.first_id if publisher.first_id is not None else earliest
    if publisher.first_id is not None and publisher.first_id < 0:
        raise UsageError(f"{where}: first_id is {publisher.first_id}; it must be 0 or more")
    if first is None:
        first = publisher.last_id + 1
    return range(max(first, publisher.last_id - length + 1), publisher.last_id + 1)


# -- subscribers -------------------------------------------------------------------------------


def _subscribers(
    gathered: Gathered, table: PublisherTable, windows: dict[str, range]
) -> tuple[SubscriberProfile, ...]:
    index = {name: p for p, name in enumerate(table.ids)}
    by_client: dict[str, list[int]] = {}
    for place, subscription in enumerate(gathered.subscriptions):
        client = subscription.client
        key = f"s{subscription.id}" if client is None else f"c{client}"
        by_client.setdefault(key, []).append(place)
    found = []
    for places in by_client.values():
        entries = [gathered.subscriptions[place] for place in places]
        profiles = [_profile(entry, table, windows, index) for entry in entries]
        first = entries[0]
        found.append(
            SubscriberProfile(
                first.id if first.client is None else first.client,
                tuple(entry.id for entry in entries),
                profiles[0] if len(profiles) == 1 else union(profiles),
                first.broker,
            )
        )
    return tuple(found)


def _profile(
    subscription: GatheredSubscription,
    table: PublisherTable,
    windows: dict[str, range],
    index: dict[str, int],
) -> PackedProfile:
    blocks: dict[int, Words] = {}
    for publisher, text in subscription.bits.items():
        p = index.get(publisher)
        where = f"subscription {subscription.id!r}: bits of publisher {publisher!r}"
        ones = _ones(where, text)
        if p is None:
            continue  # The publisher has left.
        first = subscription.first_id.get(publisher)
        if first is None:
            raise UsageError(f"{where} have no first_id; it is the message id of the first bit")
        window = windows[publisher]
        inside = _inside(ones, first, window)
        if inside.any():
            padded = np.zeros(table.words[p] * 64, np.uint8)
            padded[: len(inside)] = inside
            blocks[p] = np.packbits(padded, bitorder="little").view("<u8").astype(np.uint64)
    return PackedProfile(blocks) if blocks else EMPTY


def _ones(where: str, text: str) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    try:
        ones = np.frombuffer(text.encode("ascii"), np.uint8) - np.uint8(ord("0"))
    except UnicodeEncodeError:
        ones = np.array([2], np.uint8)
    if (ones > 1).any():
        odd = next(iter(sorted(set(text) - {"0", "1"})))
        raise UsageError(f"{where} contain {odd!r}; each character must be 0 or 1")
    return ones


def _inside(
    ones: np.ndarray[tuple[int], np.dtype[np.uint8]], first: int, window: range
) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """The bits of the window, from its first id on."""
    offset = window.start - first
    if offset >= 0:
        return ones[offset : offset + len(window)]
    gap = min(-offset, len(window))
    return np.concatenate((np.zeros(gap, np.uint8), ones[: len(window) - gap]))
