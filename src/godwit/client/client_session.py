"""The session of a client at its broker, which survives connections and brokers.  Does no I/O.

    application --> requests --> stream --> broker
    broker --> frames --> NumberedFrame: a publication, or a notice about a request

A session is resumed while the broker still has its stream: then nothing is lost or duplicated.  If
the broker has forgotten it (it restarted, or the client was away for too long), everything that is
held is asked for again, and publications that were not acknowledged are sent again once their
advertisement is in effect.  Some may have reached subscribers the first time; the subscriber's
session drops those.

A session may move to another broker (live_move.py).  Requests made meanwhile wait until that is
over, and publications while it pauses.

The rules are in pure modules that simulated clients share: holdings.py (what is held),
client_requests.py (when it is asked for), held_publications.py (when publications are sent),
deliveries.py (what is new).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from godwit.client.client_requests import ClientRequests
from godwit.client.deliveries import DeliveryMarks
from godwit.client.held_publications import HeldPublication, HeldPublications
from godwit.client.holdings import (
    HeldAdvertisement,
    HeldChannelSubscription,
    HeldSubscription,
    Holdings,
    check_askable,
)
from godwit.client.stream_endpoint import ClaimedName, NumberedFrame, StreamEndpoint
from godwit.content.channel_messages import ChannelInEffect, ChannelResults, ChannelSubscriptionId
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
)
from godwit.content.values import Value, check_record
from godwit.errors import ContentError, UsageError
from godwit.migration.move import Move
from godwit.protocol.frames import (
    FRAME_BYTES_MAX,
    HEADER,
    NAME_LENGTH_MAX,
    Acknowledge,
    Name,
    Signal,
    Welcome,
    decode_from_client,
    encode,
)
from godwit.protocol.stream import Stream
from godwit.protocol.versions import PROTOCOL, ProtocolVersion

#: The sequence number of the first publication of an incarnation.
FIRST_SEQUENCE = 1


class StreamMark(NamedTuple):
    """How far one process got with a session of one subscription, for another to go on.

    Marks compare: a batch that is stored late may carry the mark of an earlier stream.
    """

    generation: int
    """How many streams there have been."""

    received: int
    stream: str
    subscription: str


class ClientSession(StreamEndpoint):
    def __init__(
        self, name: str, *, incarnation: str = "", claimed: ClaimedName | None = None
    ) -> None:
        """`incarnation` tells this start of the client from others of its name; it is in all ids.

        Ids of an earlier one may still be in the tables of brokers while one of them waits for it
        to return: a subscription with such an id would be taken for the old one.
        """
        super().__init__(_checked(name), claimed=claimed)
        self.deliveries = DeliveryMarks(self.name)
        self.held: HeldPublications[bytes] = HeldPublications()
        """Publications that wait, as frames."""
        self.restarts = 0
        """How often the broker had forgotten the session: publications may be missing."""
        self.on_missed: Callable[[], None] = lambda: None
        """Called when the broker had forgotten the session, and subscriptions miss something."""
        self.was_answered = False
        """Whether the broker has acknowledged anything, or nothing, in this stream."""
        self.generation = 0
        """How many streams there have been, in earlier processes too."""
        self.incarnation = incarnation
        self._holdings = Holdings(self.name, incarnation)
        self._requests = ClientRequests(self._holdings, self.put)
        self._sequence = FIRST_SEQUENCE
        self._is_adopted = False
        self._lacks_nothing = False

    @property
    def advertisements(self) -> Mapping[AdvertisementId, HeldAdvertisement]:
        return self._holdings.advertisements

    @property
    def subscriptions(self) -> Mapping[SubscriptionId, HeldSubscription]:
        return self._holdings.subscriptions

    @property
    def channels(self) -> Mapping[ChannelSubscriptionId, HeldChannelSubscription]:
        return self._holdings.channels

    @property
    def has_holdings(self) -> bool:
        return bool(self._holdings.all)

    @property
    def next_sequence(self) -> int:
        """The sequence number of the next publication."""
        return self._sequence

    @property
    def has_published(self) -> bool:
        return self._sequence > FIRST_SEQUENCE

    # -- requests of the application -----------------------------------------------------------

    def advertise(self, filter: Filter) -> AdvertisementId:
        check_askable(filter)
        advertised = self._holdings.advertise(filter)
        self._requests.ask(advertised)
        return advertised.id

    def unadvertise(self, id: AdvertisementId) -> None:
        """Withdraw; publications that still wait for the advertisement are never sent."""
        advertised = self._holdings.advertisements.pop(id, None)
        if advertised is not None:
            self._requests.withdraw(advertised)
            self._release_held()

    def subscribe(self, filter: Filter, *, local_only: bool = False) -> SubscriptionId:
        check_askable(filter)
        subscribed = self._holdings.subscribe(filter, local_only=local_only)
        self._requests.ask(subscribed)
        return subscribed.id

    def unsubscribe(self, id: SubscriptionId) -> None:
        subscribed = self._holdings.unsubscribe(id)
        if subscribed is not None:
            self._requests.withdraw(subscribed)

    def subscribe_channel(
        self, channel: str, arguments: Mapping[str, Value]
    ) -> HeldChannelSubscription:
        subscribed = self._holdings.subscribe_channel(channel, dict(arguments))
        self._requests.ask(subscribed)
        return subscribed

    def unsubscribe_channel(self, id: ChannelSubscriptionId) -> None:
        subscribed = self._holdings.channels.pop(id, None)
        if subscribed is not None:
            self._requests.withdraw(subscribed)

    def publish(self, record: Mapping[str, Value], payload: bytes = b"") -> None:
        content = check_record(record)
        _check_payload(payload)
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
            raise ContentError(
                f"the publication takes {len(frame)} bytes; at most {FRAME_BYTES_MAX} are allowed:"
                " publish several smaller ones, or where the rest is stored"
            )
        self._sequence += 1
        if self.held.must_wait(advertised):
            self.held.hold(HeldPublication(advertised.id, frame, len(frame)))
        else:
            self.stream.put(frame)

    # -- frames of the broker ------------------------------------------------------------------

    def welcome(self, welcome: Welcome) -> bytes:
        """The broker has accepted the session; returns what it lacks, to be written first."""
        self._note_granted(welcome)
        if welcome.stream == self.stream.id:
            if self._is_adopted:
                self._is_adopted = False
                self._take_over(welcome)
                return b""
            return self.stream.take_again(welcome.received)
        self._is_adopted = False
        self.is_forgotten = bool(self.stream.id)
        self._lacks_nothing = welcome.kept_all and welcome.name == self.broker
        self.was_answered = False
        self.broker = welcome.name
        self._hold_again(self.stream)
        self.stream = Stream(welcome.stream)
        self.generation += 1
        if not self.is_moving:  # Else the session may be at another broker before long.
            self._ask_again()
        return b""

    def adopt(self, mark: StreamMark, filter: Filter) -> None:
        """Continue the session of another process, which held this one subscription."""
        self.generation = mark.generation
        self.stream = Stream(mark.stream)
        self.stream.received = mark.received
        self._holdings.adopt(SubscriptionId(mark.subscription), filter)
        self._is_adopted = True

    def _take_over(self, welcome: Welcome) -> None:
        self.broker = welcome.name
        self.stream.take_over(welcome.received)
        if not welcome.received:  # The broker has not received the subscription.
            self._requests.ask_for_all()

    @property
    def mark(self) -> StreamMark:
        """What another process needs to continue, if there is one subscription."""
        (subscribed,) = self.subscriptions.values()
        return StreamMark(self.generation, self.stream.received, self.stream.id, subscribed.id)

    def _hold_again(self, old: Stream) -> None:
        """Publications that were not acknowledged wait for their advertisements once more."""
        for advertised in self.advertisements.values():
            advertised.in_effect = False
        self.held.hold_first(
            HeldPublication(id, frame, len(frame)) for id, frame in _publications(old)
        )

    def _ask_again(self) -> None:
        """Ask a broker without any state of this session for everything."""
        self._release_held()
        self._holdings.renew(new_ids=self.is_forgotten)
        if self.is_forgotten:
            self.restarts += 1
            if self.subscriptions and not self._lacks_nothing:
                self.on_missed()
        self.is_forgotten = False
        self._requests.ask_for_all()

    def receive(
        self, body: bytes, peer: ProtocolVersion = PROTOCOL
    ) -> NumberedFrame | Signal | None:
        """Decode one frame of the broker, which speaks `peer`; None if it brings nothing new."""
        frame = super().receive(body, peer)
        if isinstance(frame, Publication):
            return frame if self.deliveries.is_new(frame) else None
        if isinstance(frame, AdvertisementInEffect):
            self._on_advertisement_in_effect(frame)
        elif isinstance(frame, SubscriptionInEffect):
            return replace(frame, id=self._holdings.known_as(frame.id))
        elif isinstance(frame, ChannelInEffect):
            self._on_channel_in_effect(frame)
        elif isinstance(frame, ChannelResults):
            return self._on_results(frame)
        elif isinstance(frame, Refusal):
            return self._on_refusal(frame)
        elif isinstance(frame, Acknowledge):
            self.was_answered = True
        return frame

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
        for frame in self.held.release(self.advertisements):
            self.stream.put(frame)

    def _on_refusal(self, refusal: Refusal) -> Refusal:
        """What was refused is not held, and not asked for again."""
        known = self._holdings.known_as(SubscriptionId(refusal.about))
        if self._holdings.unsubscribe(known) is not None:
            return replace(refusal, about=known)
        if self._holdings.advertisements.pop(AdvertisementId(refusal.about), None) is not None:
            self._release_held()
        self._holdings.channels.pop(ChannelSubscriptionId(refusal.about), None)
        return refusal

    # -- moving --------------------------------------------------------------------------------

    @property
    def is_moving(self) -> bool:
        return self._requests.is_moving

    def plan_move(self) -> Move:
        return self._requests.plan_move(self.broker)

    def advertise_again(self, advertisement: Advertisement) -> None:
        """Ask the old broker for a later edition: the session stays there after all."""
        self._holdings.advertise_again(advertisement)
        self.put(advertisement)

    def arrive(self, new: StreamEndpoint, move: Move) -> StreamEndpoint:
        """Continue at the new broker, which has what `move` asked it for.

        Returns an endpoint for the stream to the old broker, which may not have received all of it.
        """
        old = StreamEndpoint(self.name, self.stream)
        old.is_forgotten = self.is_forgotten
        self.stream, self.broker = new.stream, new.broker
        self.is_forgotten = new.is_forgotten
        self._requests.arrive(move)
        return old

    def known_as(self, id: SubscriptionId) -> SubscriptionId:
        """The application's id of a subscription with this id at the broker."""
        return self._holdings.known_as(id)

    def settle(self) -> None:
        """A move is over: continue with what waited for that."""
        self.held.is_paused = False
        self._requests.settle(is_forgotten=self.is_forgotten)
        if self.is_forgotten:
            self._ask_again()
        self._release_held()

    # -- state ---------------------------------------------------------------------------------

    def is_used(self, id: AdvertisementId) -> bool:
        """Whether a publication under this advertisement is not acknowledged yet."""
        return any(each.advertisement == id for each in self.held) or any(
            used == id for used, _ in _publications(self.stream)
        )

    @property
    def unacknowledged(self) -> int:
        """Publications that no broker has acknowledged yet."""
        return len(self.held) + sum(1 for _ in _publications(self.stream))

    @property
    def waiting_bytes(self) -> int:
        """Published, and not acknowledged."""
        stream = self.stream
        return stream.pending_bytes + stream.unacknowledged_bytes + self.held.size_bytes

    @property
    def is_idle(self) -> bool:
        """Whether the broker has acknowledged every request and publication."""
        return self.stream.is_idle and not self.held and not self._requests.are_waiting


def _publications(stream: Stream) -> Iterator[tuple[AdvertisementId, bytes]]:
    """Publications that the broker has not acknowledged, with their advertisements."""
    for frame in stream.frames():
        message = decode_from_client(frame[HEADER.size :])
        if isinstance(message, Publication):
            yield message.advertisement, frame


def _check_payload(payload: object) -> None:
    if not isinstance(payload, bytes):
        kind = type(payload).__name__
        hint = "text.encode()" if isinstance(payload, str) else "bytes(...)"
        raise ContentError(f"the payload must be bytes, and is of type {kind}: use {hint}")
    if len(payload) > PAYLOAD_BYTES_MAX:
        raise ContentError(
            f"the payload has {len(payload)} bytes; at most {PAYLOAD_BYTES_MAX} are allowed:"
            " publish several smaller ones, or where the rest is stored"
        )


def _checked(name: str) -> str:
    try:
        return msgspec.convert(name, Name)
    except msgspec.ValidationError:
        raise UsageError(
            f"{name!r} cannot be a client's name: use letters, digits and any of . _ $ : @ + -,"
            f" {NAME_LENGTH_MAX} at most"
        ) from None
