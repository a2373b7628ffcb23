"""The bytes on a connection.  A frame is a header and one message.

    length of the body, 4 bytes | overlay links crossed, 2 bytes | body: a tagged msgpack array

Big-endian.  The number of links is all that changes from hop to hop, so a broker passes the body
of a publication on as it came; the first one puts its stamp there (stamps.py).  What a peer may
send depends on who it is: there is a decoder for each, and a frame that it does not accept is the
end of that connection.

    a connection opens   Hello -->  <-- Welcome   (or Knock -->  <-- Here, and that was all)
    then in both ways    numbered frames (messages, notices), acknowledged by Acknowledge
    and ends             Goodbye, or nothing

Numbers are not written down: both sides count.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct as Packing
from typing import Annotated, Literal, TypeAlias, final

import msgspec

from godwit.content.channels import ChannelNotice, ChannelRequest
from godwit.content.filters import Filter
from godwit.content.messages import (
    ID_LENGTH_MAX,
    SEQUENCE_MAX,
    Advertisement,
    Letter,
    Message,
    MovingRequest,
    Notice,
    Publication,
    RoutingMessage,
    Subscription,
    Sweep,
    Unadvertisement,
    Unsubscription,
    Wired,
)
from godwit.errors import GodwitError, PeerError

PROTOCOL_VERSION = 1
HEADER = Packing(">IH")

#: A body; what a client may publish stays this far below what brokers pass on (stamps).
FRAME_BYTES_MAX = 2_097_152
STAMP_BYTES = 64
#: Until a peer has said who it is.
HELLO_BYTES_MAX = 4_096

NAME_LENGTH_MAX = 128
#: More are not asked about at a time.
BROKERS_ASKED_MAX = 4_096

#: Unless a broker says otherwise.
HEARTBEAT_S = 2.0

Name: TypeAlias = Annotated[
    str, msgspec.Meta(min_length=1, max_length=NAME_LENGTH_MAX, pattern=r"^[\w.$:@+-]+\Z")
]
Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=ID_LENGTH_MAX)]
RoundTrip: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=3_600)]
Position: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=SEQUENCE_MAX)]


class Hello(Wired, frozen=True, kw_only=True, tag=20):
    """Who is calling, and which stream it wants to go on with, if any."""

    version: int = PROTOCOL_VERSION
    role: Literal["client", "broker"]
    name: Name
    stream: Text = ""
    received: Position = 0
    secret: Text = ""
    heartbeat_s: Annotated[float, msgspec.Meta(gt=0)] = HEARTBEAT_S
    """How often it wants to hear something."""

    has_holdings: bool = False
    """Does it come back for something?  A broker that knows of nothing has failed."""

    is_durable: bool = False
    """A client that publishers wait for, also while it is away: nothing may pass it by."""


class Welcome(Wired, frozen=True, kw_only=True, tag=21):
    """The broker's answer: who it is, and which stream this is now.

    If it is not the stream that was asked for, both sides start from nothing.
    """

    name: Name
    stream: Text
    received: Position
    heartbeat_s: Annotated[float, msgspec.Meta(gt=0)] = HEARTBEAT_S
    """How often both sides say something at least: what the more impatient one wants."""

    was_known: bool = False
    """Has the broker heard of the caller before, which does not seem to remember it?"""


@final
class Acknowledge(Wired, frozen=True, kw_only=True, tag=22):
    """So many numbered frames have arrived.  Also says: I am alive."""

    received: Position


@final
class Goodbye(Wired, frozen=True, kw_only=True, tag=23):
    """The stream ends here, and why."""

    reason: str


class Dropped(Wired, frozen=True, kw_only=True, tag=24):
    """So many publications are missing here: the subscriber was too slow, or away too long."""

    count: int


@final
class Stayed(Wired, frozen=True, kw_only=True, tag=25):
    """A client that was asked to move could not, and why."""

    reason: Text


@final
class HowFar(Wired, frozen=True, kw_only=True, tag=27):
    """A broker asks a client how far it is from some brokers (the thesis's pings)."""

    question: Position
    brokers: Annotated[list[tuple[Text, Text]], msgspec.Meta(max_length=BROKERS_ASKED_MAX)]
    """Names and addresses."""

    within_s: Annotated[float, msgspec.Meta(gt=0)] = 2.0


@final
class RoundTrips(Wired, frozen=True, kw_only=True, tag=28):
    """The answer, in the order of the question; nothing for those that did not answer."""

    question: Position
    seconds: Annotated[list[RoundTrip | None], msgspec.Meta(max_length=BROKERS_ASKED_MAX)]


@final
class Knock(Wired, frozen=True, kw_only=True, tag=29):
    """Instead of a hello: who is there?  Nothing follows."""


@final
class Here(Wired, frozen=True, kw_only=True, tag=30):
    """The answer to a knock."""

    name: Name


Handshake: TypeAlias = Hello | Welcome | Knock | Here
Signal: TypeAlias = Acknowledge | Goodbye

#: What each kind of peer may send once it is known.
FromClient: TypeAlias = (
    Publication
    | Advertisement
    | Unadvertisement
    | Subscription
    | Unsubscription
    | MovingRequest
    | Sweep
    | Stayed
    | RoundTrips
    | ChannelRequest
    | Signal
)
FromBroker: TypeAlias = Publication | RoutingMessage | Letter | Signal
ToClient: TypeAlias = Publication | Notice | Dropped | HowFar | ChannelNotice | Signal
Frame: TypeAlias = (
    Message
    | Notice
    | Dropped
    | HowFar
    | Stayed
    | RoundTrips
    | ChannelRequest
    | ChannelNotice
    | Signal
    | Handshake
)


def _encode_filter(value: object) -> str:
    assert isinstance(value, Filter), f"{type(value)} has no place in a frame"
    return value.padres()


def _decode_filter(kind: type, value: object) -> Filter:
    assert kind is Filter
    if not isinstance(value, str):
        raise PeerError("a filter is text")
    return Filter.parse(value)


_encoder = msgspec.msgpack.Encoder(enc_hook=_encode_filter)
encode_body = _encoder.encode

# msgspec's decoders of unions have no precise type: these names give them one.
decode_from_client: Callable[[bytes], FromClient] = msgspec.msgpack.Decoder(
    FromClient, dec_hook=_decode_filter
).decode
decode_from_broker: Callable[[bytes], FromBroker] = msgspec.msgpack.Decoder(
    FromBroker, dec_hook=_decode_filter
).decode
decode_to_client: Callable[[bytes], ToClient] = msgspec.msgpack.Decoder(
    ToClient, dec_hook=_decode_filter
).decode
decode_hello: Callable[[bytes], Hello | Knock | Goodbye] = msgspec.msgpack.Decoder(
    Hello | Knock | Goodbye
).decode
decode_here: Callable[[bytes], Here | Goodbye] = msgspec.msgpack.Decoder(Here | Goodbye).decode
decode_welcome: Callable[[bytes], Welcome | Goodbye] = msgspec.msgpack.Decoder(
    Welcome | Goodbye
).decode


def encode(frame: Frame, hops: int = 0) -> bytes:
    return framed(encode_body(frame), hops)


def framed(body: bytes, hops: int = 0) -> bytes:
    return HEADER.pack(len(body), hops) + body


def malformed(error: Exception) -> PeerError:
    """What msgspec, or the parser of filters, did not like about a frame."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return error if isinstance(error, PeerError) else PeerError(f"malformed frame: {reason}")


#: What decoding hostile bytes may raise.
DECODE_ERRORS = (msgspec.DecodeError, GodwitError, UnicodeDecodeError, RecursionError)
