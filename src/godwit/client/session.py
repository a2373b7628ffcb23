"""What one client holds at its broker, and how it survives: a state machine that does no I/O.

    application --> requests --> stream --> broker
    broker --> frames --> Arrived: a publication, or a notice about a request

A session is resumed when the broker still has its stream: then nothing is lost and nothing comes
twice.  If the broker has forgotten it (it restarted, or we were away for too long), everything we
hold is asked for again, and publications that were not acknowledged are sent again once their
advertisement is in effect.  Some of them may have reached subscribers the first time: what is not
new for a subscriber is dropped by its session.

C1  A publication is sent when its advertisement is in effect, in the order of publishing.
C2  Sequence numbers of one publisher arrive in rising order; anything else came before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from godwit.content.filters import Filter
from godwit.content.messages import (
    PAYLOAD_BYTES_MAX,
    Advertisement,
    AdvertisementId,
    AdvertisementInEffect,
    Publication,
    Refusal,
    Subscription,
    SubscriptionId,
    SubscriptionInEffect,
    Unadvertisement,
    Unsubscription,
)
from godwit.content.values import TEXT_LENGTH_MAX, Value, check_record
from godwit.errors import ContentError, UsageError
from godwit.wire.frames import (
    DECODE_ERRORS,
    FRAME_BYTES_MAX,
    HEADER,
    NAME_LENGTH_MAX,
    Acknowledge,
    Dropped,
    Goodbye,
    Name,
    ToClient,
    Welcome,
    decode_from_client,
    decode_to_client,
    encode,
    malformed,
)
from godwit.wire.stream import Stream

#: Publishers whose last number is remembered (C2).
PUBLISHERS_KNOWN_MAX = 100_000


@dataclass(slots=True, eq=False)
class Advertised:
    filter: Filter
    edition: int = 0
    in_effect: bool = False


@dataclass(slots=True, eq=False)
class Subscribed:
    filter: Filter
    edition: int = 0


Arrived: TypeAlias = Publication | SubscriptionInEffect | AdvertisementInEffect | Refusal | Dropped
Signalled: TypeAlias = Acknowledge | Goodbye


class ClientSession:
    def __init__(self, name: str, *, first_sequence: int, first_serial: int = 0) -> None:
        """Numbers of publications and ids go on from here, where no earlier session may have been.

        Ids of an earlier session may still be in the tables of brokers, as long as one of them
        waits for it to come back: a subscription with such an id would be taken for the old one.
        """
        self.name = _checked(name)
        self.stream = Stream("")
        self.advertisements: dict[AdvertisementId, Advertised] = {}
        self.subscriptions: dict[SubscriptionId, Subscribed] = {}
        self.duplicates = 0
        self.restarts = 0
        """How often the broker had forgotten us."""
        self._serial = first_serial
        self._first_sequence = self._sequence = first_sequence
        self._last_sequence: dict[str, int] = {}
        self._last_used: AdvertisementId | None = None
        # Publications that wait for their advertisements to be in effect (C1), as frames.
        self._held: deque[tuple[AdvertisementId, bytes]] = deque()
        self.held_bytes = 0

    @property
    def next_sequence(self) -> int:
        """The sequence number that the next publication will have."""
        return self._sequence

    @property
    def has_published(self) -> bool:
        return self._sequence > self._first_sequence

    # -- what the application asks -------------------------------------------------------------

    def advertise(self, filter: Filter) -> AdvertisementId:
        check_askable(filter)
        id = AdvertisementId(self._new_id("a"))
        self.advertisements[id] = Advertised(filter)
        self.stream.put(encode(Advertisement(id=id, filter=filter)))
        return id

    def unadvertise(self, id: AdvertisementId) -> None:
        """Withdraw; what still waits for the advertisement to be in effect is never published."""
        if self.advertisements.pop(id, None) is not None:
            self.stream.put(encode(Unadvertisement(id=id)))
            self._release_held()

    def publish(self, record: Mapping[str, Value], payload: bytes = b"") -> None:
        content = check_record(record)
        if not isinstance(payload, bytes) or len(payload) > PAYLOAD_BYTES_MAX:
            raise ContentError(f"a payload is bytes, and at most {PAYLOAD_BYTES_MAX} of them")
        id, advertised = self._permission(content)
        publication = Publication(
            publisher=self.name,
            sequence=self._sequence,
            advertisement=id,
            content=content,
            payload=payload,
        )
        frame = encode(publication)
        if len(frame) > FRAME_BYTES_MAX:
            raise ContentError(f"a publication takes at most {FRAME_BYTES_MAX} bytes")
        self._sequence += 1
        if advertised.in_effect and not self._held:
            self.stream.put(frame)
        else:
            self._held.append((id, frame))
            self.held_bytes += len(frame)

    def _permission(self, content: dict[str, Value]) -> tuple[AdvertisementId, Advertised]:
        """An advertisement that permits this content: the one used last, or the first that does."""
        if self._last_used is not None:
            advertised = self.advertisements.get(self._last_used)
            if advertised is not None and advertised.filter.permits(content):
                return self._last_used, advertised
        for id, advertised in self.advertisements.items():
            if advertised.filter.permits(content):
                self._last_used = id
                return id, advertised
        raise ContentError(self._why_not_permitted(content))

    def _why_not_permitted(self, content: dict[str, Value]) -> str:
        if not self.advertisements:
            return "nothing is advertised; call advertise() before publish()"
        if len(self.advertisements) > 1:
            return f"none of {len(self.advertisements)} advertisements permits this record"
        (advertised,) = self.advertisements.values()
        return advertised.filter.why_not_permitted(content)

    def subscribe(self, filter: Filter) -> SubscriptionId:
        check_askable(filter)
        id = SubscriptionId(self._new_id("s"))
        self.subscriptions[id] = Subscribed(filter)
        self.stream.put(encode(Subscription(id=id, filter=filter)))
        return id

    def unsubscribe(self, id: SubscriptionId) -> None:
        if self.subscriptions.pop(id, None) is not None:
            self.stream.put(encode(Unsubscription(id=id)))

    def _new_id(self, letter: str) -> str:
        self._serial += 1
        return f"{self.name}/{letter}{self._serial}"

    # -- what the broker says ------------------------------------------------------------------

    def welcome(self, welcome: Welcome) -> bytes:
        """The broker has answered; the result is what it lacks, to be written first."""
        if welcome.stream == self.stream.id:
            return self.stream.take_again(welcome.received)
        if self.stream.id:
            self.restarts += 1
        self._start_again(welcome.stream)
        return b""

    def _start_again(self, stream_id: str) -> None:
        """Ask for everything anew, in a new stream."""
        old, self.stream = self.stream, Stream(stream_id)
        for advertised in self.advertisements.values():
            advertised.in_effect = False
        self._hold_again(old)
        self._release_held()
        for id, advertised in self.advertisements.items():
            advertised.edition += 1
            request = Advertisement(id=id, filter=advertised.filter, edition=advertised.edition)
            self.stream.put(encode(request))
        for sub_id, subscribed in self.subscriptions.items():
            subscribed.edition += 1
            self.stream.put(
                encode(
                    Subscription(id=sub_id, filter=subscribed.filter, edition=subscribed.edition)
                )
            )

    def _hold_again(self, old: Stream) -> None:
        """Publications the broker may not have had wait for their advertisements once more."""
        for id, frame in reversed(list(_publications(old))):
            self._held.appendleft((id, frame))
            self.held_bytes += len(frame)

    def receive(self, body: bytes) -> Arrived | Signalled | None:
        """Take in one frame of the broker; nothing if it is no news."""
        try:
            frame: ToClient = decode_to_client(body)
        except DECODE_ERRORS as error:
            raise malformed(error) from None
        if isinstance(frame, Acknowledge):
            self.stream.acknowledge(frame.received)
            return frame
        if isinstance(frame, Goodbye):
            return frame
        self.stream.received += 1
        if isinstance(frame, Publication):
            last = self._last_sequence.get(frame.publisher, -1)
            if frame.sequence <= last:  # C2
                self.duplicates += 1
                return None
            self._last_sequence[frame.publisher] = frame.sequence
            if len(self._last_sequence) > PUBLISHERS_KNOWN_MAX:
                del self._last_sequence[next(iter(self._last_sequence))]  # Known the longest.
        elif isinstance(frame, AdvertisementInEffect):
            self._on_advertisement_in_effect(frame)
        elif isinstance(frame, Refusal):
            self._on_refusal(frame)
        return frame

    def _on_advertisement_in_effect(self, notice: AdvertisementInEffect) -> None:
        advertised = self.advertisements.get(notice.id)
        if advertised is None or advertised.edition != notice.edition:
            return
        advertised.in_effect = True
        self._release_held()

    def _release_held(self) -> None:
        """Send what need not wait any more, in the order of publishing."""
        while self._held:
            id, frame = self._held[0]
            advertised = self.advertisements.get(id)
            if advertised is not None and not advertised.in_effect:
                return
            self._held.popleft()
            self.held_bytes -= len(frame)
            if advertised is not None:
                self.stream.put(frame)

    def _on_refusal(self, refusal: Refusal) -> None:
        """What was refused is not held, and not asked for again."""
        self.subscriptions.pop(SubscriptionId(refusal.about), None)
        if self.advertisements.pop(AdvertisementId(refusal.about), None) is not None:
            self._release_held()

    def is_used(self, id: AdvertisementId) -> bool:
        """Is there a publication under this advertisement that the broker may not have had?"""
        return any(used == id for used, _ in (*self._held, *_publications(self.stream)))

    @property
    def waiting_bytes(self) -> int:
        """Published, and not known to be taken in by the broker."""
        stream = self.stream
        return stream.pending_bytes + stream.unacknowledged_bytes + self.held_bytes

    @property
    def is_idle(self) -> bool:
        """Has the broker taken in all that we asked and published?"""
        return self.stream.is_idle and not self._held


def check_askable(filter: Filter) -> None:
    """A broker would refuse it, or could not even read it."""
    if not filter.is_satisfiable:
        raise UsageError(f"nothing can match {filter}")
    if len(filter.padres()) > TEXT_LENGTH_MAX:
        raise UsageError(f"a filter as text has at most {TEXT_LENGTH_MAX} characters")


def _publications(stream: Stream) -> Iterator[tuple[AdvertisementId, bytes]]:
    """What the broker may not have had of our publications, with their advertisements."""
    for frame in stream.frames():
        message = decode_from_client(frame[HEADER.size :])
        if isinstance(message, Publication):
            yield message.advertisement, frame


def _checked(name: str) -> str:
    try:
        return msgspec.convert(name, Name)
    except msgspec.ValidationError:
        raise UsageError(
            f"{name!r} is no name: write letters, digits and any of . _ $ : @ + -,"
            f" {NAME_LENGTH_MAX} at most"
        ) from None
