"""Our end of the stream to one broker.  Does no I/O.

A client at home has one, its session.  While it moves it has another one, at the broker it moves
to; and for a moment after that, at the one it has left.
"""

from __future__ import annotations

from typing import TypeAlias

from godwit.content.channels import ChannelNotice, ChannelRequest
from godwit.content.messages import Message, Notice, Publication
from godwit.wire.frames import (
    DECODE_ERRORS,
    Acknowledge,
    Dropped,
    Goodbye,
    HowFar,
    RoundTrips,
    Stayed,
    ToClient,
    Welcome,
    decode_to_client,
    encode,
    malformed,
)
from godwit.wire.stream import Stream

#: What is numbered, and means something to the client.
Arrived: TypeAlias = Publication | Notice | Dropped | HowFar | ChannelNotice
Signalled: TypeAlias = Acknowledge | Goodbye


class Post:
    def __init__(self, name: str, stream: Stream | None = None) -> None:
        """`name` is the client's."""
        self.name = name
        self.broker = ""
        """Its name, once it has answered."""
        self.stream = Stream("") if stream is None else stream
        self.is_forgotten = False
        """Has the broker lost what we had told it?"""

    @property
    def has_holdings(self) -> bool:
        """Is there something at the broker that we count on?"""
        return False

    def put(self, message: Message | Stayed | RoundTrips | ChannelRequest) -> None:
        self.stream.put(encode(message))

    def welcome(self, welcome: Welcome) -> bytes:
        """The broker has answered; the result is what it lacks, to be written first."""
        self.broker = welcome.name
        if welcome.stream == self.stream.id:
            return self.stream.take_again(welcome.received)
        old, self.stream = self.stream, Stream(welcome.stream)
        if old.acknowledged or old.received:
            self.is_forgotten = True
        else:  # The connection was lost before it had heard a word.
            for frame in old.frames():
                self.stream.put(frame)
        return b""

    def receive(self, body: bytes) -> Arrived | Signalled | None:
        """Take in one frame of the broker; nothing if it is no news."""
        try:
            frame: ToClient = decode_to_client(body)
        except DECODE_ERRORS as error:
            raise malformed(error) from None
        if isinstance(frame, Acknowledge):
            self.stream.acknowledge(frame.received)
        elif not isinstance(frame, Goodbye):
            self.stream.received += 1
        return frame
