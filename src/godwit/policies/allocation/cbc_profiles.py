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
         5. Up to BATCH_WIDTH publications of a publisher are noted with their destinations, and
            recorded together: shifting a long vector for each delivery would take the broker
            several times as long.  The result is that of recording them one by one.
Tested   tests/policies/allocation/test_cbc_profiles.py: also against recording one by one.

D1  A vector belongs to one use of a subscription id: what is subscribed again begins without bits.
D2  There are at most `vectors_max` vectors, and a profile for each subscription that is held now.
D3  At most NOTED_MAX destinations are noted and not recorded, where a publication counts as
    PUBLICATION_WEIGHT of them; reading records them first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import chain

import numpy as np

from godwit.broker.stimuli import Hop, LocalClient
from godwit.content.filters import Filter
from godwit.content.messages import Publication, SubscriptionId, is_control_filter
from godwit.content.values import Record
from godwit.matching.index import MatchingIndex
from godwit.profile.bit_vector import BitVector

#: Filters of one client that are tried one by one; more are in an index.
TRIED_MAX = 8
#: Publications of one publisher that are recorded together.
BATCH_WIDTH = 512
#: What is noted of all publishers, at most.
NOTED_MAX = 131_072
PUBLICATION_WEIGHT = 16
#: Fewer destinations are recorded by a loop: arrays would take longer.
LOOPED_MAX = 64
#: The share of vectors that is dropped at once: sorting them for each would take too long.
DROPPED_SHARE = 0.1


class DeliveryVector(BitVector):
    """The deliveries of one publisher for one subscription."""

    __slots__ = ("touched_s",)

    touched_s: float
    """When something was recorded last."""

    def record_mask(self, base: int, mask: int) -> None:
        """As `record` for `base` and each bit of the mask, in order."""
        last = base + mask.bit_length() - 1
        shift = last - self.first - self.length + 1
        if shift > 0:
            self.bits >>= shift
            self.first += shift
        offset = base - self.first
        self.bits |= mask << offset if offset >= 0 else mask >> -offset


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


class _Rows(dict[Hop, int]):
    """Numbers destinations in the order in which they are met."""

    def __missing__(self, hop: Hop) -> int:
        row = self[hop] = len(self)
        return row


class _Batch:
    """Publications of one publisher that are noted: offset i stands for number `base` + i."""

    __slots__ = ("base", "contents", "destinations", "last_s", "offsets", "weight")

    def __init__(self, base: int) -> None:
        self.base = base
        self.offsets: list[int] = []
        self.destinations: list[Sequence[Hop]] = []
        self.contents: dict[int, Record] = {}
        """By offset, for clients whose subscriptions must be told apart."""
        self.weight = 0
        self.last_s = 0.0

    def masks(self) -> Iterator[tuple[str, int]]:
        """For each client what was delivered to it: bit i for offset i."""
        if self.weight - PUBLICATION_WEIGHT * len(self.offsets) <= LOOPED_MAX:
            yield from self._few_masks()
            return
        rows = _Rows()
        met = np.fromiter(
            map(rows.__getitem__, chain.from_iterable(self.destinations)), dtype=np.intp
        )
        columns = np.repeat(self.offsets, list(map(len, self.destinations)))
        matrix = np.zeros((len(rows), max(self.offsets) + 1), dtype=np.bool_)
        matrix[met, columns] = True
        packed = np.packbits(matrix, axis=1, bitorder="little")
        width, body = packed.shape[1], packed.tobytes()
        for row, hop in enumerate(rows):
            if type(hop) is LocalClient:
                yield hop.name, int.from_bytes(body[row * width : (row + 1) * width], "little")

    def _few_masks(self) -> Iterator[tuple[str, int]]:
        masks: dict[str, int] = {}
        for offset, destinations in zip(self.offsets, self.destinations, strict=True):
            for hop in destinations:
                if type(hop) is LocalClient:
                    masks[hop.name] = masks.get(hop.name, 0) | 1 << offset
        yield from masks.items()


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
        self._several = 0
        """Clients with several subscriptions."""
        self._batches: dict[str, _Batch] = {}
        """By publisher; the one that began first comes first."""
        self._noted = 0
        self.count = 0
        """Vectors at present."""
        self.dropped = 0
        """Vectors that were dropped because there were too many."""

    def record(
        self, publication: Publication, publisher: str, destinations: Sequence[Hop], now_s: float
    ) -> None:
        """The broker delivered a publication to those of `destinations` that are clients."""
        sequence = publication.sequence
        if self._noted >= NOTED_MAX:  # D3
            self._record_batch(next(iter(self._batches)))
        batch = self._batches.get(publisher)
        if batch is None or not 0 <= sequence - batch.base < BATCH_WIDTH:
            batch = self._next_batch(publisher, sequence)
        offset = sequence - batch.base
        batch.offsets.append(offset)
        batch.destinations.append(destinations)
        if self._several:
            batch.contents[offset] = publication.content
        batch.last_s = now_s
        weight = PUBLICATION_WEIGHT + len(destinations)
        batch.weight += weight
        self._noted += weight

    def _next_batch(self, publisher: str, base: int) -> _Batch:
        """A new batch; the last one of the publisher is recorded."""
        if publisher in self._batches:
            self._record_batch(publisher)
        batch = self._batches[publisher] = _Batch(base)
        return batch

    def _record_all(self) -> None:
        for publisher in list(self._batches):
            self._record_batch(publisher)

    def _record_batch(self, publisher: str) -> None:
        batch = self._batches.pop(publisher)
        self._noted -= batch.weight
        for client, mask in batch.masks():
            self._record_mask(client, publisher, batch, mask)

    def _record_mask(self, client: str, publisher: str, batch: _Batch, mask: int) -> None:
        subscriber = self._subscribers.get(client)
        if subscriber is None:
            return  # It has subscriptions to control classes only.
        if subscriber.only is not None:
            self._add(subscriber.only, publisher, batch, mask)
            return
        masks: defaultdict[LocalSubscription, int] = defaultdict(int)
        for offset, content in batch.contents.items():
            if mask >> offset & 1:
                for each in subscriber.matched_by(content):
                    masks[each] |= 1 << offset
        for each, own in masks.items():
            self._add(each, publisher, batch, own)

    def _add(
        self, subscription: LocalSubscription, publisher: str, batch: _Batch, mask: int
    ) -> None:
        vector = subscription.vectors.get(publisher)
        if vector is None:
            if self.count >= self._vectors_max:
                self._drop_idle()
            self.count += 1
            first = batch.base + (mask & -mask).bit_length() - 1
            vector = subscription.vectors[publisher] = DeliveryVector(first, self._length)
        vector.touched_s = batch.last_s
        vector.record_mask(batch.base, mask)

    def _drop_idle(self) -> None:
        """Make room (D2)."""
        all_of_them = [
            (vector.touched_s, number, each, publisher)
            for number, each in enumerate(self._recorded())
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

    def refresh(self, client: str) -> None:
        """The client has subscribed, unsubscribed or left: keep what it still holds (D1)."""
        if client in self._subscribers:  # What was noted is for what it held.
            self._record_all()
        before = self._subscribers.pop(client, None)
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
        self._several += (len(held) > 1) - (before is not None and before.only is None)
        if held:
            self._subscribers[client] = _Subscriber(held)

    # -- reading -------------------------------------------------------------------------------

    def subscriptions(self) -> list[LocalSubscription]:
        """All of them, with all that was delivered."""
        self._record_all()
        return list(self._recorded())

    def _recorded(self) -> Iterator[LocalSubscription]:
        for subscriber in self._subscribers.values():
            yield from subscriber.subscriptions
