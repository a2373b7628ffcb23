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
         5. A delivery sets no bit when it is made.  The last `vector_length` publications of each
            publisher are noted with their destinations, which costs the same for one destination
            and for a thousand; vectors are made from notes when they are read.  Older publications
            than these have no bit: plans do not count them, because they are behind the window of
            the publisher's last publication.
Tested   tests/policies/allocation/test_cbc_profiles.py: also against recording one by one.

D1  A vector belongs to one use of a subscription id: what is subscribed again begins without bits.
D2  There are at most `vectors_max` vectors, and a profile for each subscription that is held now.
D3  Notes weigh at most NOTED_MAX; beyond that, those of the publisher that has been noted for the
    longest time are recorded.  Reading records all of them.
D4  The notes of a publisher rise in number and in sequence.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from heapq import nsmallest
from itertools import chain
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from godwit.broker.stimuli import Hop, LocalClient
from godwit.content.filters import Filter
from godwit.content.messages import Publication, SubscriptionId, is_control_filter
from godwit.content.values import Record
from godwit.matching.index import MatchingIndex
from godwit.profile.bit_vector import BitVector

K = TypeVar("K")

#: Filters of one client that are tried one by one; more are in an index.
TRIED_MAX = 8
#: What is noted of all publishers, at most, where a destination counts as 1: about 32 MB.
NOTED_MAX = 4_194_304
#: A publication that is noted, without its destinations; with its content; a publisher.
NOTE_WEIGHT, CONTENT_WEIGHT, PUBLISHER_WEIGHT = 32, 160, 100
#: Fewer destinations are recorded by a loop: arrays would take longer.
LOOPED_MAX = 64
#: The share of vectors that is dropped at once: sorting them for each would take too long.
DROPPED_SHARE = 0.1


class DeliveryVector(BitVector):
    """The deliveries of one publisher for one subscription."""

    __slots__ = ("touched_s",)

    touched_s: float
    """When something was delivered last."""

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

    __slots__ = ("client", "filter", "id", "since", "vectors")

    def __init__(self, client: str, id: SubscriptionId, filter: Filter, since: int) -> None:
        self.client = client
        self.id = id
        self.filter = filter
        self.since = since
        """The first note that can be for it (D1)."""
        self.vectors: dict[str, DeliveryVector] = {}


class _Subscriber:
    """The subscriptions of one client."""

    __slots__ = ("_index", "several_before", "subscriptions")

    def __init__(self) -> None:
        self.subscriptions: dict[SubscriptionId, LocalSubscription] = {}
        self.several_before = 0
        """Notes before this one may be for one of several subscriptions."""
        self._index: MatchingIndex[SubscriptionId] | None = None

    @property
    def has_several(self) -> bool:
        return len(self.subscriptions) > 1

    def add(self, subscription: LocalSubscription) -> None:
        self.subscriptions[subscription.id] = subscription
        if self._index is not None:
            self._index.add(subscription.id, subscription.filter)
        elif len(self.subscriptions) > TRIED_MAX:
            self._index = MatchingIndex()
            for each in self.subscriptions.values():
                self._index.add(each.id, each.filter)

    def remove(self, id: SubscriptionId) -> LocalSubscription | None:
        removed = self.subscriptions.pop(id, None)
        if removed is not None and self._index is not None:
            self._index.remove(id)
        return removed

    def noted_for(self, number: int, content: Record | None) -> Sequence[SubscriptionId]:
        """The subscriptions that a note is for: those that were held then and match it.

        Without content no client had several: it is for the one that was held.
        """
        held = self.subscriptions
        if content is None:
            return [each.id for each in held.values() if each.since <= number]
        if self._index is not None:
            return [id for id in self._index.match(content) if held[id].since <= number]
        return [
            each.id
            for each in held.values()
            if each.since <= number and each.filter.matches_checked(content)
        ]


class _Rows(dict[K, int]):
    """Numbers keys in the order in which they are met."""

    def __missing__(self, key: K) -> int:
        row = self[key] = len(self)
        return row


def _masks(offsets: Sequence[int], keys: Sequence[Sequence[K]]) -> Iterator[tuple[K, int]]:
    """For each key the offsets whose list has it: bit i for offset i."""
    lengths = list(map(len, keys))
    if sum(lengths) <= LOOPED_MAX:
        few: dict[K, int] = {}
        for offset, each in zip(offsets, keys, strict=True):
            for key in each:
                few[key] = few.get(key, 0) | 1 << offset
        yield from few.items()
        return
    rows: _Rows[K] = _Rows()
    met = np.fromiter(map(rows.__getitem__, chain.from_iterable(keys)), dtype=np.intp)
    matrix = np.zeros((len(rows), max(offsets) + 1), dtype=np.bool_)
    matrix[met, np.repeat(offsets, lengths)] = True
    packed = np.packbits(matrix, axis=1, bitorder="little")
    width, body = packed.shape[1], packed.tobytes()
    for row, key in enumerate(rows):
        yield key, int.from_bytes(body[row * width : (row + 1) * width], "little")


#: Its number among all notes, the sequence of the publication, when it was delivered, to whom, and
#: its content if a client had several subscriptions.  A plain tuple: it is made for each delivery.
_Note: TypeAlias = tuple[int, int, float, Sequence[Hop], Record | None]


class _Run(NamedTuple):
    """Notes of one publisher while they are recorded: offset i stands for sequence `base` + i."""

    publisher: str
    base: int
    numbers: Sequence[int]
    offsets: Sequence[int]
    times_s: dict[int, float]
    """By offset."""
    contents: Sequence[Record | None]

    def since(self, number: int, mask: int) -> int:
        """The part of a mask from a note on."""
        if number <= self.numbers[0]:
            return mask
        place = bisect_left(self.numbers, number)
        if place == len(self.numbers):
            return 0
        return mask >> self.offsets[place] << self.offsets[place]  # D4


def _weight(note: _Note) -> int:
    return len(note[3]) + (NOTE_WEIGHT if note[4] is None else CONTENT_WEIGHT)


class DeliveryProfiles:
    """The profiles of the subscriptions of one broker's clients."""

    def __init__(self, *, vector_length: int, vectors_max: int) -> None:
        self._length = vector_length
        self._vectors_max = vectors_max
        self._subscribers: dict[str, _Subscriber] = {}
        self._several = 0
        """Clients with several subscriptions."""
        self._notes: dict[str, deque[_Note]] = {}
        """By publisher; the one that began first comes first."""
        self._number = 0
        """Of the next note."""
        self._noted = 0
        self.count = 0
        """Vectors that were made and are held."""
        self.dropped = 0
        """Vectors that were dropped because there were too many."""

    def record(
        self, publication: Publication, publisher: str, destinations: Sequence[Hop], now_s: float
    ) -> None:
        """The broker delivered a publication to those of `destinations` that are clients."""
        sequence, number = publication.sequence, self._number
        self._number = number + 1
        notes = self._notes.get(publisher)
        if notes is None or notes[-1][1] >= sequence:  # D4
            notes = self._begin_notes(publisher)
        if self._several:
            notes.append((number, sequence, now_s, destinations, publication.content))
            noted = self._noted + CONTENT_WEIGHT + len(destinations)
        else:
            notes.append((number, sequence, now_s, destinations, None))
            noted = self._noted + NOTE_WEIGHT + len(destinations)
        if len(notes) > self._length:
            _, _, _, hops, content = notes.popleft()  # As _weight, without a call.
            noted -= len(hops) + (NOTE_WEIGHT if content is None else CONTENT_WEIGHT)
        self._noted = noted
        if noted > NOTED_MAX:
            self._record_notes(next(iter(self._notes)))  # D3

    def _begin_notes(self, publisher: str) -> deque[_Note]:
        if publisher in self._notes:
            self._record_notes(publisher)
        self._noted += PUBLISHER_WEIGHT
        notes = self._notes[publisher] = deque()
        return notes

    def _record_all(self) -> None:
        for publisher in list(self._notes):
            self._record_notes(publisher)

    def _record_notes(self, publisher: str) -> None:
        notes = self._notes.pop(publisher)
        self._noted -= PUBLISHER_WEIGHT + sum(map(_weight, notes))
        # Not all sequences are delivered here, so the first ones may be behind the window.
        base = max(notes[0][1], notes[-1][1] - self._length + 1)
        while notes[0][1] < base:
            notes.popleft()
        numbers, sequences, times_s, destinations, contents = zip(*notes, strict=True)
        offsets = [sequence - base for sequence in sequences]
        times = dict(zip(offsets, times_s, strict=True))
        run = _Run(publisher, base, numbers, offsets, times, contents)
        for hop, mask in _masks(offsets, destinations):
            if type(hop) is LocalClient:
                self._record_mask(hop.name, run, mask)

    def _record_mask(self, client: str, run: _Run, mask: int) -> None:
        """The client was sent the publications of the mask."""
        subscriber = self._subscribers.get(client)
        if subscriber is None:
            return  # It has left, or has subscriptions to control classes only.
        if subscriber.has_several or subscriber.several_before > run.numbers[0]:
            noted = zip(run.numbers, run.offsets, run.contents, strict=True)
            found = [
                (offset, subscriber.noted_for(number, content))
                for number, offset, content in noted
                if mask >> offset & 1
            ]
            for id, own in _masks([offset for offset, _ in found], [ids for _, ids in found]):
                self._add(subscriber.subscriptions[id], run, own)
            return
        for only in subscriber.subscriptions.values():
            own = run.since(only.since, mask)
            if own:
                self._add(only, run, own)

    def _add(self, subscription: LocalSubscription, run: _Run, mask: int) -> None:
        vector = subscription.vectors.get(run.publisher)
        if vector is None:
            if self.count >= self._vectors_max:
                self._drop_idle()
            self.count += 1
            first = run.base + (mask & -mask).bit_length() - 1
            vector = subscription.vectors[run.publisher] = DeliveryVector(first, self._length)
        vector.touched_s = run.times_s[mask.bit_length() - 1]
        vector.record_mask(run.base, mask)

    def _drop_idle(self) -> None:
        """Make room (D2)."""
        all_of_them = [
            (vector.touched_s, number, each, publisher)
            for number, each in enumerate(self._held())
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

    def change(self, client: str, id: SubscriptionId, filter: Filter | None) -> None:
        """The client has subscribed, or unsubscribed if there is no filter (D1)."""
        subscriber = self._subscribers.get(client)
        if subscriber is None:
            subscriber = self._subscribers[client] = _Subscriber()
        if subscriber.has_several:
            self._several -= 1
            subscriber.several_before = self._number
        removed = subscriber.remove(id)
        if removed is not None:
            self.count -= len(removed.vectors)
        if filter is not None and not is_control_filter(filter):
            subscriber.add(LocalSubscription(client, id, filter, self._number))
        self._several += subscriber.has_several
        if not subscriber.subscriptions:
            del self._subscribers[client]

    def forget(self, client: str) -> None:
        """The client has left."""
        subscriber = self._subscribers.get(client)
        if subscriber is not None:
            for id in list(subscriber.subscriptions):
                self.change(client, id, None)

    # -- reading -------------------------------------------------------------------------------

    @property
    def subscription_count(self) -> int:
        return sum(len(each.subscriptions) for each in self._subscribers.values())

    def subscriptions(self) -> list[LocalSubscription]:
        """All of them, with all that was delivered."""
        self._record_all()
        return list(self._held())

    def _held(self) -> Iterator[LocalSubscription]:
        for subscriber in self._subscribers.values():
            yield from subscriber.subscriptions.values()
