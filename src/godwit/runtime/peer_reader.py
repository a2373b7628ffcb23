"""Reads from one peer: frames are decoded and handed to the node.

    frame --> message --> a run of publications --> receive_run
                          anything else         --> receive, or the method for its kind

Publications that follow each other in one read are handed over together, as a run.  There is one
reader for each connection; the port (port.py) outlives it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from godwit.content.channel_messages import (
    ChannelRequest,
    ChannelSubscription,
    ChannelUnsubscription,
)
from godwit.content.link_messages import (
    EpochNews,
    LinkDecision,
    LinkMessage,
    LinkState,
    LinkWave,
    StatusRequest,
)
from godwit.content.messages import OtherMessage, Publication
from godwit.protocol.connection import Connection
from godwit.protocol.frames import (
    DECODE_ERRORS,
    FRAME_BYTES_MAX,
    STAMP_BYTES,
    Acknowledge,
    FromBroker,
    FromClient,
    Goodbye,
    MoveCompleted,
    RoundTrips,
    Stayed,
    decode_from_broker,
    decode_from_client,
    is_of_later_version,
    malformed,
)
from godwit.protocol.stamps import is_unstamped, unstamped
from godwit.protocol.versions import PROTOCOL
from godwit.runtime.port import Port

#: A publication, the links it has crossed, and the bytes it came as.
Arrived: TypeAlias = tuple[Publication, int, bytes]
#: Publications that are handled together: so many are still in the processor's cache at the end.
RUN_MAX = 64


class MessageHandler(Protocol):
    """What a reader hands messages to: the node."""

    handled: Counter[str]
    """Messages handled, by kind."""

    def receive_run(self, source: Port, run: Sequence[Arrived]) -> None:
        """Publications have arrived, one behind the other."""
        ...

    def receive(self, source: Port, message: OtherMessage, hops: int, body: bytes) -> None:
        """Another message has arrived, as these bytes."""
        ...

    def finish_read(self, source: Port) -> None:
        """All messages of one read were handed over."""
        ...

    def on_acknowledged(self, source: Port, received: int) -> None:
        """The peer has received so many frames."""
        ...

    def on_channel_request(self, source: Port, request: ChannelRequest) -> None: ...

    def on_round_trips(self, source: Port, answer: RoundTrips) -> None: ...

    def on_move_completed(self, source: Port, completed: MoveCompleted) -> None: ...

    def on_link_message(self, source: Port, message: LinkMessage) -> None: ...

    def on_status_request(self, source: Port, request: StatusRequest) -> None: ...

    def on_goodbye(self, source: Port, goodbye: Goodbye) -> None: ...

    def on_lost(self, source: Port, reason: str) -> None:
        """The connection is lost; the peer may come back."""
        ...

    def on_refused(self, source: Port, reason: str) -> None:
        """The connection was ended because the peer broke the protocol."""
        ...


class PeerReader:
    """The Receiver of a connection (protocol/connection.py) whose peer is known."""

    def __init__(self, port: Port, handler: MessageHandler) -> None:
        self._port = port
        self._handler = handler
        self._is_link = port.is_link
        self._run: list[Arrived] = []
        self._peer_version = PROTOCOL
        self._decode: Callable[[bytes], FromClient | FromBroker] = (
            decode_from_broker if self._is_link else decode_from_client
        )

    def read_from(self, connection: Connection) -> None:
        connection.receiver = self
        self._peer_version = connection.peer_version
        connection.frame_bytes_max = FRAME_BYTES_MAX + (STAMP_BYTES if self._is_link else 0)

    def on_frame(self, hops: int, body: bytes) -> None:
        try:
            message = self._decode(body)
        except DECODE_ERRORS as error:
            if is_of_later_version(body, self._peer_version):
                self._skip()
                return
            raise malformed(error) from None
        if type(message) is Publication:
            if not self._is_link and not is_unstamped(body):
                message, body = unstamped(message)
            run = self._run
            run.append((message, hops, body))
            if len(run) == RUN_MAX:
                self._end_run()
            return
        if self._run:
            self._end_run()
        port, handler = self._port, self._handler
        if type(message) is Acknowledge:
            handler.on_acknowledged(port, message.received)
        elif type(message) is Goodbye:
            handler.on_goodbye(port, message)
        else:
            port.stream.received += 1
            if type(message) is Stayed:
                port.stayed_reason = message.reason
            elif type(message) is MoveCompleted:
                handler.on_move_completed(port, message)
            elif type(message) is RoundTrips:
                handler.on_round_trips(port, message)
            elif isinstance(message, LinkState | LinkWave | LinkDecision | EpochNews):
                handler.on_link_message(port, message)
            elif type(message) is StatusRequest:
                handler.on_status_request(port, message)
            elif isinstance(message, ChannelSubscription | ChannelUnsubscription):
                handler.on_channel_request(port, message)
            else:
                handler.receive(port, message, hops, body)

    def _skip(self) -> None:
        """Receive a frame of a kind that only a later version knows: it has its number."""
        if self._run:
            self._end_run()
        self._port.stream.received += 1
        self._handler.handled["of a later version"] += 1

    def _end_run(self) -> None:
        """Hand over the publications that arrived up to here."""
        run, self._run = self._run, []
        self._port.stream.received += len(run)
        self._handler.receive_run(self._port, run)

    def on_read(self) -> None:
        if self._run:
            self._end_run()
        self._handler.finish_read(self._port)

    def on_writable(self) -> None:
        self._port.flush()

    def on_heartbeat(self) -> None:
        self._port.beat()

    def on_lost(self, reason: str, *, broke_rules: bool) -> None:
        self._port.detach()
        if broke_rules:
            self.on_read()  # Messages before the violation count.
            self._handler.on_refused(self._port, reason)
        else:
            self._handler.on_lost(self._port, reason)
