"""What CBC records: which publications were delivered for each local subscription.

Paper    Cheung, thesis 6.1.2.
Words    Lbv -> vector_length; counter -> BitVector.first; advId -> incarnation of the publisher.
Departs  1. A client receives a publication once, however many of its subscriptions match (open in
            the thesis, where a client has one).  The delivery counts for each of its subscriptions
            that match: wherever one of them is, it draws the publication.
         2. A filter alone sets no bit: a publication that the broker did not deliver to the client
            does not count.
         3. Vectors are bounded in number.  Beyond `vectors_max`, those that have received nothing
            for the longest time go, a tenth at once, and are counted.
         4. Subscriptions to control classes have no profile: their traffic follows the brokers.
Tested   tests/policies/allocation/test_cbc_profiles.py.

D1  A vector belongs to one use of a subscription id: what is subscribed again begins without bits.
D2  There are at most `vectors_max` vectors, and a profile for each subscription that is held now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import nsmallest

from godwit.broker.stimuli import Hop, LocalClient
from godwit.content.filters import Filter
from godwit.content.messages import Publication, SubscriptionId, is_control_filter
from godwit.content.values import Record
from godwit.matching.index import MatchingIndex
from godwit.profile.bit_vector import BitVector

#: Filters of one client that are tried one by one; more are in an index.
TRIED_MAX = 8
#: The share of vectors that is dropped at once: sorting them for each would take too long.
DROPPED_SHARE = 0.1


class DeliveryVector(BitVector):
    """The deliveries of one publisher for one subscription."""

    __slots__ = ("touched_s",)

    touched_s: float
    """When something was delivered last."""


class LocalSubscription:
    """A subscription of a local client and what it received."""

    __slots__ = ("client", "filter", "id", "vectors")

    def __init__(self, client: str, id: SubscriptionId, filter: Filter) -> None:
        self.client = client
        self.id = id
        self.filter = filter
        self.vectors: dict[str, DeliveryVector] = {}


class _Subscriber:
    """The subscriptions of one client; `only` if it has one."""

    __slots__ = ("_index", "only", "subscriptions")

    def __init__(self, subscriptions: list[LocalSubscription]) -> None:
        self.subscriptions = subscriptions
        self.only = subscriptions[0] if len(subscriptions) == 1 else None
        self._index: MatchingIndex[int] | None = None
        if len(subscriptions) > TRIED_MAX:
            self._index = MatchingIndex()
            for number, subscription in enumerate(subscriptions):
                self._index.add(number, subscription.filter)

    def matched_by(self, content: Record) -> Sequence[LocalSubscription]:
        if self._index is None:
            return [each for each in self.subscriptions if each.filter.matches_checked(content)]
        return [self.subscriptions[number] for number in self._index.match(content)]


class DeliveryProfiles:
    """The profiles of the subscriptions of one broker's clients."""

    def __init__(
        self,
        subscriptions_of: Callable[[str], Mapping[SubscriptionId, Filter]],
        *,
        vector_length: int,
        vectors_max: int,
    ) -> None:
        self._subscriptions_of = subscriptions_of
        self._length = vector_length
        self._vectors_max = vectors_max
        self._subscribers: dict[str, _Subscriber] = {}
        self.count = 0
        """Vectors at present."""
        self.dropped = 0
        """Vectors that were dropped because there were too many."""

    def record(
        self, publication: Publication, publisher: str, destinations: Sequence[Hop], now_s: float
    ) -> None:
        """The broker delivered a publication to those of `destinations` that are clients."""
        sequence = publication.sequence
        subscribers = self._subscribers
        for hop in destinations:
            if type(hop) is not LocalClient:
                continue
            subscriber = subscribers.get(hop.name) or self.refresh(hop.name)
            only = subscriber.only
            for each in subscriber.matched_by(publication.content) if only is None else (only,):
                vector = each.vectors.get(publisher)
                if vector is None:
                    vector = self._new_vector(each, publisher, sequence)
                vector.touched_s = now_s
                vector.record(sequence)

    def _new_vector(
        self, subscription: LocalSubscription, publisher: str, first: int
    ) -> DeliveryVector:
        if self.count >= self._vectors_max:
            self._drop_idle()
        self.count += 1
        vector = subscription.vectors[publisher] = DeliveryVector(first, self._length)
        return vector

    def _drop_idle(self) -> None:
        """Make room (D2)."""
        all_of_them = [
            (vector.touched_s, number, each, publisher)
            for number, each in enumerate(self.subscriptions())
            for publisher, vector in each.vectors.items()
        ]
        number = max(1, int(DROPPED_SHARE * self._vectors_max))
        for _, _, each, publisher in nsmallest(
            number, all_of_them, key=lambda entry: (entry[0], entry[1], entry[3])
        ):
            del each.vectors[publisher]
        self.count -= number
        self.dropped += number

    # -- clients -------------------------------------------------------------------------------

    def refresh(self, client: str) -> _Subscriber:
        """The client has subscribed or unsubscribed, or is new: keep what it still holds (D1)."""
        before = self._subscribers.get(client)
        known = {} if before is None else {each.id: each for each in before.subscriptions}
        held = []
        for id, filter in self._subscriptions_of(client).items():
            if is_control_filter(filter):
                continue
            kept = known.get(id)
            if kept is not None and kept.filter is filter:
                held.append(known.pop(id))
            else:
                held.append(LocalSubscription(client, id, filter))
        self.count -= sum(len(each.vectors) for each in known.values())
        subscriber = self._subscribers[client] = _Subscriber(held)
        if not held:
            del self._subscribers[client]
        return subscriber

    # -- reading -------------------------------------------------------------------------------

    def subscriptions(self) -> Iterator[LocalSubscription]:
        for subscriber in self._subscribers.values():
            yield from subscriber.subscriptions
