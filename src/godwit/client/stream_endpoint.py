"""The client's end of the stream to one broker.  Does no I/O.

A client has one at its broker: its session.  While it moves it has another one, at the new broker;
and for a moment after that, at the broker it has left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from godwit.content.channel_messages import ChannelNotice, ChannelRequest
from godwit.content.link_messages import NetworkStatus, StatusRequest
from godwit.content.messages import Message, Notice, Publication
from godwit.protocol.frames import (
    DECODE_ERRORS,
    Acknowledge,
    Dropped,
    Goodbye,
    MeasureRoundTrips,
    MoveCompleted,
    RoundTrips,
    Signal,
    Stayed,
    ToClient,
    Welcome,
    decode_to_client,
    encode,
    is_of_later_version,
    malformed,
)
from godwit.protocol.stream import Stream
from godwit.protocol.versions import PROTOCOL, ProtocolVersion

#: The numbered frames that a broker sends to a client.
NumberedFrame: TypeAlias = (
    Publication | Notice | Dropped | MeasureRoundTrips | ChannelNotice | NetworkStatus
)


@dataclass(slots=True)
class ClaimedName:
    """A client's claim to the name that it has chosen: the same at every broker it calls."""

    incarnation: str
    take_over: bool = False
    """Until a broker has granted the name, end the session that has it."""

    generation: int = 0
    """How often the name was taken over, as brokers know it."""

    attachment: int = 0
    """Calls so far: brokers tell earlier ones from later ones by it."""


class StreamEndpoint:
    def __init__(
        self, name: str, stream: Stream | None = None, claimed: ClaimedName | None = None
    ) -> None:
        """`name` is the client's; `claimed` is None if it makes no claim to it."""
        self.name = name
        self.claimed = claimed
        self.broker = ""
        """The broker's name, once it has answered."""
        self.stream = Stream("") if stream is None else stream
        self.is_forgotten = False
        """The broker has lost the stream, and all state of this client."""
        self.skipped = 0
        """Frames of kinds that only a later version of the protocol knows."""

    @property
    def has_holdings(self) -> bool:
        """Whether the client relies on state at the broker."""
        return False

    def put(
        self,
        message: Message | Stayed | MoveCompleted | RoundTrips | ChannelRequest | StatusRequest,
    ) -> None:
        self.stream.put(encode(message))

    def welcome(self, welcome: Welcome) -> bytes:
        """The broker has accepted the session; returns what it lacks, to be written first."""
        self.broker = welcome.name
        self._note_granted(welcome)
        if welcome.stream == self.stream.id:
            return self.stream.take_again(welcome.received)
        old, self.stream = self.stream, Stream(welcome.stream)
        if old.acknowledged or old.received:
            self.is_forgotten = True
        else:  # The connection was lost before the broker had received anything.
            for frame in old.frames():
                self.stream.put(frame)
        return b""

    def _note_granted(self, welcome: Welcome) -> None:
        if self.claimed is not None:
            self.claimed.take_over = False
            self.claimed.generation = max(self.claimed.generation, welcome.generation)

    def receive(
        self, body: bytes, peer: ProtocolVersion = PROTOCOL
    ) -> NumberedFrame | Signal | None:
        """Decode one frame of the broker, which speaks `peer`; None if it brings nothing new."""
        try:
            frame: ToClient = decode_to_client(body)
        except DECODE_ERRORS as error:
            if is_of_later_version(body, peer):
                self.stream.received += 1
                self.skipped += 1
                return None
            raise malformed(error) from None
        if isinstance(frame, Acknowledge):
            self.stream.acknowledge(frame.received)
        elif not isinstance(frame, Goodbye):
            self.stream.received += 1
        return frame
