"""What one client holds at its broker, and how it survives: a state machine that does no I/O.

    application --> requests --> stream --> broker
    broker --> frames --> Arrived: a publication, or a notice about a request

A session is resumed when the broker still has its stream: then nothing is lost and nothing comes
twice.  If the broker has forgotten it (it restarted, or we were away for too long), everything we
hold is asked for again, and publications that were not acknowledged are sent again once their
advertisement is in effect.  Some of them may have reached subscribers the first time: what is not
new for a subscriber is dropped by its session.

A session may move to another broker (journey.py).  What is asked for meanwhile waits until that
is over, and what is published while it pauses.

C1  A publication is sent when its advertisement is in effect, in the order of publishing.
C2  Sequence numbers of one publisher arrive in rising order; anything else came before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from godwit.client.holdings import (
    Advertised,
    ChannelSubscribed,
    Held,
    Holdings,
    Subscribed,
    Withdrawal,
)
from godwit.client.post import Arrived, Post, Signalled
from godwit.content.channels import ChannelInEffect, ChannelResults, ChannelSubscriptionId
from godwit.content.filters import Filter
from godwit.content.messages import (
    PAYLOAD_BYTES_MAX,
    Advertisement,
    AdvertisementId,
    AdvertisementInEffect,
    Publication,
    Refusal,
    SubscriptionId,
    SubscriptionInEffect,
    Unsubscription,
)
from godwit.content.values import Value, check_record
from godwit.errors import ContentError, UsageError
from godwit.migration.moving import Move
from godwit.wire.frames import (
    FRAME_BYTES_MAX,
    HEADER,
    NAME_LENGTH_MAX,
    Name,
    Welcome,
    decode_from_client,
    encode,
)
from godwit.wire.stream import Stream

#: Publishers whose last number is remembered (C2).
PUBLISHERS_KNOWN_MAX = 100_000


class Mark(NamedTuple):
    """How far one process got with a session of one subscription, for another to go on.

    They compare: what is kept late may have the mark of a stream that is no more.
    """

    generation: int
    """How many streams there have been."""

    received: int
    stream: str
    subscription: str


class ClientSession(Post):
    def __init__(self, name: str, *, first_sequence: int, first_serial: int = 0) -> None:
        """Numbers of publications and ids go on from here, where no earlier session may have been.

        Ids of an earlier session may still be in the tables of brokers, as long as one of them
        waits for it to come back: a subscription with such an id would be taken for the old one.
        """
        super().__init__(_checked(name))
        self.duplicates = 0
        self.restarts = 0
        """How often we started from nothing: publications may be missing."""
        self._holdings = Holdings(self.name, first_serial)
        self._first_sequence = self._sequence = first_sequence
        self._last_sequence: dict[str, int] = {}
        # Publications that wait for their advertisements to be in effect (C1), as frames.
        self._held: deque[tuple[AdvertisementId, bytes]] = deque()
        self.held_bytes = 0
        self.is_moving = False
        self.is_paused = False
        """Publications wait for the end of a move."""
        self._moves = 0
        self._withdrawn: list[Withdrawal] = []
        self._requests_wait = False
        self._is_adopted = False
        self.generation = 0
        """How many streams there have been, also before us."""

    @property
    def advertisements(self) -> Mapping[AdvertisementId, Advertised]:
        return self._holdings.advertisements

    @property
    def subscriptions(self) -> Mapping[SubscriptionId, Subscribed]:
        return self._holdings.subscriptions

    @property
    def channels(self) -> Mapping[ChannelSubscriptionId, ChannelSubscribed]:
        return self._holdings.channels

    @property
    def has_holdings(self) -> bool:
        return bool(self._holdings.all)

    @property
    def next_sequence(self) -> int:
        """The sequence number that the next publication will have."""
        return self._sequence

    @property
    def has_published(self) -> bool:
        return self._sequence > self._first_sequence

    # -- what the application asks -------------------------------------------------------------

    def advertise(self, filter: Filter) -> AdvertisementId:
        advertised = self._holdings.advertise(filter)
        self._ask(advertised)
        return advertised.id

    def unadvertise(self, id: AdvertisementId) -> None:
        """Withdraw; what still waits for the advertisement to be in effect is never published."""
        advertised = self._holdings.advertisements.pop(id, None)
        if advertised is not None:
            self._withdraw(advertised)
            self._release_held()

    def subscribe(self, filter: Filter) -> SubscriptionId:
        subscribed = self._holdings.subscribe(filter)
        self._ask(subscribed)
        return subscribed.id

    def unsubscribe(self, id: SubscriptionId) -> None:
        subscribed = self._holdings.unsubscribe(id)
        if subscribed is not None:
            self._withdraw(subscribed)

    def subscribe_channel(self, channel: str, arguments: Mapping[str, Value]) -> ChannelSubscribed:
        subscribed = self._holdings.subscribe_channel(channel, dict(arguments))
        self._ask(subscribed)
        return subscribed

    def unsubscribe_channel(self, id: ChannelSubscriptionId) -> None:
        subscribed = self._holdings.channels.pop(id, None)
        if subscribed is not None:
            self._withdraw(subscribed)

    def _ask(self, held: Held) -> None:
        held.is_asked = not self.is_moving
        if held.is_asked:
            self.put(held.request())
        else:
            self._requests_wait = True

    def _withdraw(self, held: Held) -> None:
        if not held.is_asked:
            return
        if self.is_moving:
            self._withdrawn.append(held.withdrawal())
            self._requests_wait = True
        else:
            self.put(held.withdrawal())

    def publish(self, record: Mapping[str, Value], payload: bytes = b"") -> None:
        content = check_record(record)
        if not isinstance(payload, bytes) or len(payload) > PAYLOAD_BYTES_MAX:
            raise ContentError(f"a payload is bytes, and at most {PAYLOAD_BYTES_MAX} of them")
        advertised = self._holdings.permission(content)
        publication = Publication(
            publisher=self.name,
            sequence=self._sequence,
            advertisement=advertised.id,
            content=content,
            payload=payload,
        )
        frame = encode(publication)
        if len(frame) > FRAME_BYTES_MAX:
            raise ContentError(f"a publication takes at most {FRAME_BYTES_MAX} bytes")
        self._sequence += 1
        if advertised.in_effect and not self._held and not self.is_paused:
            self.stream.put(frame)
        else:
            self._held.append((advertised.id, frame))
            self.held_bytes += len(frame)

    # -- what the broker says ------------------------------------------------------------------

    def welcome(self, welcome: Welcome) -> bytes:
        """The broker has answered; the result is what it lacks, to be written first."""
        if welcome.stream == self.stream.id:
            if self._is_adopted:
                self._is_adopted = False
                self._take_over(welcome)
                return b""
            return self.stream.take_again(welcome.received)
        self._is_adopted = False
        self.is_forgotten = bool(self.stream.id)
        self.broker = welcome.name
        self._hold_again(self.stream)
        self.stream = Stream(welcome.stream)
        self.generation += 1
        if not self.is_moving:  # Else we may be elsewhere before long.
            self._ask_again()
        return b""

    def adopt(self, mark: Mark, filter: Filter) -> None:
        """Go on where another process has left off, which held this one subscription."""
        self.generation = mark.generation
        self.stream = Stream(mark.stream)
        self.stream.received = mark.received
        self._holdings.adopt(SubscriptionId(mark.subscription), filter)
        self._is_adopted = True

    def _take_over(self, welcome: Welcome) -> None:
        self.broker = welcome.name
        self.stream.take_over(welcome.received)
        if not welcome.received:  # It has never heard of the subscription.
            for held in self._holdings.all:
                self._ask(held)

    @property
    def mark(self) -> Mark:
        """What another process would need to know, if there is one subscription."""
        (subscribed,) = self.subscriptions.values()
        return Mark(self.generation, self.stream.received, self.stream.id, subscribed.id)

    def _hold_again(self, old: Stream) -> None:
        """Publications the broker may not have had wait for their advertisements once more."""
        for advertised in self.advertisements.values():
            advertised.in_effect = False
        for id, frame in reversed(list(_publications(old))):
            self._held.appendleft((id, frame))
            self.held_bytes += len(frame)

    def _ask_again(self) -> None:
        """Ask a broker for everything that knows of nothing."""
        self._release_held()
        for advertised in self.advertisements.values():
            advertised.edition += 1
        if self.is_forgotten:
            self.restarts += 1
            for id in self.subscriptions:
                self._holdings.rename(id)
        self.is_forgotten = False
        for held in self._holdings.all:
            self._ask(held)

    def receive(self, body: bytes) -> Arrived | Signalled | None:
        """Take in one frame of the broker; nothing if it is no news."""
        frame = super().receive(body)
        if isinstance(frame, Publication):
            return frame if self.is_news(frame) else None
        if isinstance(frame, AdvertisementInEffect):
            self._on_advertisement_in_effect(frame)
        elif isinstance(frame, SubscriptionInEffect):
            return replace(frame, id=self._holdings.known(frame.id))
        elif isinstance(frame, ChannelInEffect):
            self._on_channel_in_effect(frame)
        elif isinstance(frame, ChannelResults):
            return self._on_results(frame)
        elif isinstance(frame, Refusal):
            return self._on_refusal(frame)
        return frame

    def is_news(self, publication: Publication) -> bool:
        """Has it not come before?  Our own do come back to us if we move."""
        publisher, sequence = publication.publisher, publication.sequence
        if publisher == self.name:
            return False
        if sequence <= self._last_sequence.get(publisher, -1):  # C2
            self.duplicates += 1
            return False
        self._last_sequence[publisher] = sequence
        if len(self._last_sequence) > PUBLISHERS_KNOWN_MAX:
            del self._last_sequence[next(iter(self._last_sequence))]  # Known the longest.
        return True

    def _on_advertisement_in_effect(self, notice: AdvertisementInEffect) -> None:
        advertised = self.advertisements.get(notice.id)
        if advertised is None or advertised.edition != notice.edition:
            return
        advertised.in_effect = True
        self._release_held()

    def _on_channel_in_effect(self, notice: ChannelInEffect) -> None:
        subscribed = self.channels.get(notice.id)
        if subscribed is not None and subscribed.position is None:
            subscribed.position = notice.start

    def _on_results(self, results: ChannelResults) -> ChannelResults | None:
        subscribed = self.channels.get(results.id)
        rows = [] if subscribed is None else subscribed.take(results)
        if not rows:
            return None
        seen = len(results.rows) - len(rows)
        return replace(results, first=results.first + seen, rows=rows)

    def _release_held(self) -> None:
        """Send what need not wait any more, in the order of publishing."""
        while self._held and not self.is_paused:
            id, frame = self._held[0]
            advertised = self.advertisements.get(id)
            if advertised is not None and not advertised.in_effect:
                return
            self._held.popleft()
            self.held_bytes -= len(frame)
            if advertised is not None:
                self.stream.put(frame)

    def _on_refusal(self, refusal: Refusal) -> Refusal:
        """What was refused is not held, and not asked for again."""
        known = self._holdings.known(SubscriptionId(refusal.about))
        if self._holdings.unsubscribe(known) is not None:
            return replace(refusal, about=known)
        if self._holdings.advertisements.pop(AdvertisementId(refusal.about), None) is not None:
            self._release_held()
        self._holdings.channels.pop(ChannelSubscriptionId(refusal.about), None)
        return refusal

    # -- moving --------------------------------------------------------------------------------

    def plan_move(self) -> Move:
        self._moves += 1
        self.is_moving = True
        return self._holdings.plan_move(self._moves, self.broker)

    def advertise_again(self, advertisement: Advertisement) -> None:
        """Ask our broker for another edition: we have not moved after all."""
        held = self.advertisements.get(advertisement.id)
        if held is not None:
            held.edition, held.in_effect = advertisement.edition, False
        self.put(advertisement)

    def arrive(self, post: Post, move: Move) -> None:
        """We are at another broker, which has what `move` asked it for."""
        self.stream, self.broker = post.stream, post.broker
        self.is_forgotten = post.is_forgotten
        self._holdings.arrive(move)
        self._withdrawn = [
            Unsubscription(id=move.subscriptions[gone.id].id)
            if isinstance(gone, Unsubscription)
            else gone
            for gone in self._withdrawn
        ]

    def known(self, id: SubscriptionId) -> SubscriptionId:
        """What the application calls the subscription with this id."""
        return self._holdings.known(id)

    def settle(self) -> None:
        """A move is over: go on with what waited for that."""
        self.is_moving = self.is_paused = self._requests_wait = False
        withdrawn, self._withdrawn = self._withdrawn, []
        if self.is_forgotten:
            self._ask_again()
        else:
            for withdrawal in withdrawn:
                self.put(withdrawal)
            for held in self._holdings.all:
                if not held.is_asked:
                    self._ask(held)
        self._release_held()

    # -- how it stands -------------------------------------------------------------------------

    def is_used(self, id: AdvertisementId) -> bool:
        """Is there a publication under this advertisement that the broker may not have had?"""
        return any(used == id for used, _ in (*self._held, *_publications(self.stream)))

    @property
    def unacknowledged(self) -> int:
        """Publications that nobody has answered for yet."""
        return len(self._held) + sum(1 for _ in _publications(self.stream))

    @property
    def waiting_bytes(self) -> int:
        """Published, and not acknowledged."""
        stream = self.stream
        return stream.pending_bytes + stream.unacknowledged_bytes + self.held_bytes

    @property
    def is_idle(self) -> bool:
        """Has the broker taken in all that we asked and published?"""
        return self.stream.is_idle and not self._held and not self._requests_wait


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
