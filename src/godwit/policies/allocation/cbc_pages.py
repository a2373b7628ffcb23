"""What a broker answers, in pages, and what all answers are together.

Paper    Cheung, thesis 6.1.1, 6.1.2: the contents of a BIA.
Words    URL -> BrokerEntry.address; entries of a BIA -> BrokerEntry, PublisherEntry,
         ProfileEntry.
Departs  1. A broker lists in its first page the brokers that it asks.  One that was asked and has
            not sent all its pages is missing, also behind a broker that failed.
         2. A client that moves may be in the answers of two brokers: the later one in its pages
            counts, with the deliveries of both.
         3. Vectors of publishers that no broker has are left out: they have left, and have no rate.
Tested   tests/policies/allocation/test_cbc_pages.py.

A page has about PAGE_BYTES: a subscription with more vectors than that is in several.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from godwit.errors import UsageError
from godwit.policies.allocation.gathered import (
    Gathered,
    GatheredBroker,
    GatheredPublisher,
    GatheredSubscription,
)
from godwit.profile.bit_vector import LENGTH, BitVector

#: A page delays the publications behind it on a link, so it is small.
PAGE_BYTES = 16_384
#: What stands in a document for a bandwidth without limit: JSON has no infinity.
UNLIMITED_BYTES_S = 1e15


class BrokerEntry(msgspec.Struct, frozen=True, array_like=True, tag="B"):
    broker: str
    address: str
    neighbours: tuple[str, ...]
    missing: tuple[str, ...]
    """Brokers that this one has given up, or knows to be lost."""

    is_linked: bool
    """Whether all its configured links are up or given up."""

    output_bandwidth_bytes_s: float
    matching_delay_base_s: float
    matching_delay_per_subscription_s: float
    vector_length: int
    vectors_dropped: int


class PublisherEntry(msgspec.Struct, frozen=True, array_like=True, tag="P"):
    id: str
    client: str
    rate_per_s: float
    bandwidth_bytes_s: float
    first_id: int
    last_id: int


class VectorEntry(msgspec.Struct, frozen=True, array_like=True):
    publisher: str
    first: int
    bits: bytes


class ProfileEntry(msgspec.Struct, frozen=True, array_like=True, tag="S"):
    id: str
    client: str
    vectors: tuple[VectorEntry, ...]


PageEntry: TypeAlias = BrokerEntry | PublisherEntry | ProfileEntry


class CbcPage(msgspec.Struct, frozen=True, array_like=True):
    """A part of the answer of one broker.  The first entry of the first page is its own."""

    broker: str
    is_last: bool
    entries: tuple[PageEntry, ...]


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(CbcPage)


def pages(broker: str, entries: Iterable[PageEntry]) -> Iterator[bytes]:
    """Encoded one by one, when they are asked for: a broker has other things to do."""
    waiting: list[PageEntry] = []
    size = 0
    for number, entry in enumerate(entries):
        waiting.append(entry)
        size += len(_encode(entry))
        if size >= PAGE_BYTES or number == 0:  # The first says whom the broker asks: at once.
            yield _encode(CbcPage(broker, False, tuple(waiting)))
            waiting, size = [], 0
    yield _encode(CbcPage(broker, True, tuple(waiting)))


def subscription_entries(
    id: str, client: str, vectors: Iterable[tuple[str, BitVector]]
) -> Iterator[ProfileEntry]:
    """One entry, or several if it has many vectors."""
    waiting: list[VectorEntry] = []
    size = 0
    is_first = True
    for publisher, vector in vectors:
        entry = VectorEntry(publisher, vector.first, vector.to_bytes())
        waiting.append(entry)
        size += len(entry.bits) + len(publisher)
        if size >= PAGE_BYTES:
            yield ProfileEntry(id, client, tuple(waiting))
            waiting, size, is_first = [], 0, False
    if waiting or is_first:
        yield ProfileEntry(id, client, tuple(waiting))


@dataclass(slots=True)
class _Answered:
    """The answer of one broker so far."""

    entry: BrokerEntry
    publishers: list[PublisherEntry] = field(default_factory=list)
    subscriptions: list[ProfileEntry] = field(default_factory=list)
    is_complete: bool = False


class Answers:
    """The pages of all brokers of a gathering, put together."""

    def __init__(self, expected: Iterable[str] = ()) -> None:
        """`expected` are brokers that are known to exist, for instance from a network file."""
        self._expected = frozenset(expected)
        self._answered: dict[str, _Answered] = {}

    def add(self, page: bytes) -> None:
        try:
            decoded = _decoder.decode(page)
        except msgspec.DecodeError as error:
            raise UsageError(
                f"a page of the gathering cannot be read: {error}; all brokers of a network need"
                " the same version for it"
            ) from None
        for entry in decoded.entries:
            if isinstance(entry, BrokerEntry):
                self._answered[decoded.broker] = _Answered(entry)
            elif isinstance(entry, PublisherEntry):
                self._answered[decoded.broker].publishers.append(entry)
            else:
                self._answered[decoded.broker].subscriptions.append(entry)
        if decoded.is_last:
            self._answered[decoded.broker].is_complete = True

    @property
    def begun(self) -> list[str]:
        """The brokers that have begun to answer."""
        return sorted(self._answered)

    @property
    def answered(self) -> list[str]:
        """The brokers whose answers are complete."""
        return sorted(name for name, found in self._answered.items() if found.is_complete)

    @property
    def asked(self) -> list[str]:
        """All brokers that are known to exist."""
        names = set(self._answered) | self._expected
        for found in self._answered.values():
            names.update(found.entry.neighbours, found.entry.missing)
        return sorted(names)

    @property
    def missing(self) -> tuple[str, ...]:
        """Brokers without a complete answer, and links that have not been up."""
        complete = self._complete()
        named = set(self.asked) - {found.entry.broker for found in complete}
        unlinked = [
            f"a neighbour of {found.entry.broker} that is not linked yet"
            for found in complete
            if not found.entry.is_linked
        ]
        return (*sorted(named), *sorted(unlinked))

    @property
    def dropped(self) -> dict[str, int]:
        """Brokers that had to drop vectors, and how many."""
        return {
            found.entry.broker: found.entry.vectors_dropped
            for found in self._complete()
            if found.entry.vectors_dropped
        }

    def gathered(self) -> Gathered:
        complete = self._complete()
        publishers = _publishers(complete)
        return Gathered(
            publishers=tuple(publishers[id] for id in sorted(publishers)),
            brokers=tuple(_broker(found.entry) for found in complete),
            subscriptions=tuple(_subscriptions(complete, set(publishers), self._length(complete))),
            vector_length=self._length(complete),
            missing=self.missing,
        )

    def _complete(self) -> list[_Answered]:
        return [self._answered[name] for name in self.answered]

    def _length(self, complete: list[_Answered]) -> int:
        lengths = {found.entry.vector_length: found.entry.broker for found in complete}
        if len(lengths) > 1:
            said = ", ".join(f"{broker} has {length}" for length, broker in sorted(lengths.items()))
            raise UsageError(
                f"brokers have bit vectors of different lengths ({said}); set the same"
                " `vector_length` in [profiling] for all of them"
            )
        return next(iter(lengths), LENGTH)


def _broker(entry: BrokerEntry) -> GatheredBroker:
    return GatheredBroker(
        id=entry.broker,
        output_bandwidth_bytes_s=min(entry.output_bandwidth_bytes_s, UNLIMITED_BYTES_S),
        matching_delay_base_s=entry.matching_delay_base_s,
        matching_delay_per_subscription_s=entry.matching_delay_per_subscription_s,
        address=entry.address or None,
        neighbours=entry.neighbours,
    )


def _publishers(complete: list[_Answered]) -> dict[str, GatheredPublisher]:
    found: dict[str, GatheredPublisher] = {}
    for answer in complete:
        for each in answer.publishers:
            before = found.get(each.id)
            if before is not None and before.last_id > each.last_id:
                continue  # It has moved; this is where it was.
            found[each.id] = GatheredPublisher(
                id=each.id,
                rate_per_s=each.rate_per_s,
                bandwidth_bytes_s=each.bandwidth_bytes_s,
                last_id=each.last_id,
                first_id=each.first_id,
                broker=answer.entry.broker,
                client=None if each.client == each.id else each.client,
            )
    return found


def _subscriptions(
    complete: list[_Answered], publishers: set[str], length: int
) -> Iterator[GatheredSubscription]:
    vectors: dict[str, dict[str, BitVector]] = {}
    places: dict[str, tuple[str, str]] = {}
    for answer in complete:
        for each in answer.subscriptions:
            places[each.id] = (each.client, answer.entry.broker)
            mine = vectors.setdefault(each.id, {})
            for entry in each.vectors:
                if entry.publisher in publishers:
                    vector = BitVector.of_bytes(entry.bits, entry.first, length)
                    before = mine.get(entry.publisher)
                    mine[entry.publisher] = vector if before is None else before | vector
    for id in sorted(places):
        client, broker = places[id]
        yield GatheredSubscription(
            id=id,
            first_id={name: vector.first for name, vector in sorted(vectors[id].items())},
            bits={name: bit_text(vector) for name, vector in sorted(vectors[id].items())},
            broker=broker,
            client=client,
        )


def bit_text(vector: BitVector) -> str:
    """Bit 0 first, up to the last that is set."""
    return format(vector.bits, "b")[::-1] if vector.bits else ""
