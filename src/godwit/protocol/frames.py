"""The bytes on a connection.  A frame is a header and one message.

    length of the body, 4 bytes | overlay links crossed, 2 bytes | body: a tagged msgpack array

Big-endian.  Only the number of links changes from hop to hop, so a broker forwards the body of a
publication unchanged; the first broker adds its stamp (stamps.py).  What a peer may send depends on
its role: there is a decoder for each role, and a frame that it does not accept ends the connection.

    handshake        Hello -->  <-- Welcome
    both directions  numbered frames (messages, notices), acknowledged by Acknowledge
    end              Goodbye, or nothing

    instead          ProbeRequest -->  <-- ProbeReply, and the connection is closed

Numbers are not transmitted: both sides count.  A later minor version (versions.py) may add fields
at the end of a frame, and numbered kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from struct import Struct as Packing
from typing import Annotated, Literal, TypeAlias, final, get_args

import msgspec

from godwit.broker.stimuli import LinkKind
from godwit.content.channel_messages import ChannelNotice, ChannelRequest
from godwit.content.filters import Filter
from godwit.content.link_messages import (
    EpochNews,
    LinkMessage,
    NetworkStatus,
    StatusRequest,
)
from godwit.content.mesh_messages import MeshMessage
from godwit.content.messages import (
    SEQUENCE_MAX,
    Advertisement,
    Letter,
    Message,
    MovingRequest,
    Notice,
    PartMessage,
    Publication,
    RoutingMessage,
    Subscription,
    Sweep,
    Unadvertisement,
    Unsubscription,
)
from godwit.content.wired import ID_LENGTH_MAX, Wired
from godwit.errors import GodwitError, PeerError
from godwit.protocol.versions import PROTOCOL, ProtocolVersion

HEADER = Packing(">IH")

#: The size of a body, at most.  Brokers accept STAMP_BYTES more of each other (stamps.py).
FRAME_BYTES_MAX = 2_097_152
STAMP_BYTES = 64
#: The size of a body before the handshake is complete.
HELLO_BYTES_MAX = 4_096

NAME_LENGTH_MAX = 128
#: In one MeasureRoundTrips.
BROKERS_ASKED_MAX = 4_096

#: The default.
HEARTBEAT_S = 2.0

Name: TypeAlias = Annotated[
    str, msgspec.Meta(min_length=1, max_length=NAME_LENGTH_MAX, pattern=r"^[\w.$:@+-]+\Z")
]
Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=ID_LENGTH_MAX)]
RoundTrip: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=3_600)]
Position: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=SEQUENCE_MAX)]


class Hello(Wired, frozen=True, kw_only=True, tag=20):
    """The caller's name and role, and the stream that it wants to resume, if any."""

    version: int = PROTOCOL.major
    role: Literal["client", "broker"]
    name: Name
    stream: Text = ""
    received: Position = 0
    secret: Text = ""
    heartbeat_s: Annotated[float, msgspec.Meta(gt=0)] = HEARTBEAT_S
    """How often it wants to receive something."""

    has_holdings: bool = False
    """The caller expects saved state; a broker without it has restarted."""

    is_durable: bool = False
    """A client that publishers wait for, also while it is away: it must not miss anything."""

    link: LinkKind = LinkKind.PRIMARY
    """The kind of link that a broker opens."""

    minor: int = PROTOCOL.minor
    """Of the protocol version, which is `version`.`minor`."""

    incarnation: Text = ""
    """Of a client that claims its name; empty if it claims nothing."""

    attachment: Position = 0
    """Counts the calls of this incarnation: the latest one is where it is."""

    generation: Position = 0
    """Of its last claim, as in `Welcome`."""

    take_over: bool = False
    """End the session that has the name, if there is one."""

    is_expected: bool = False
    """The broker's configuration has this link by name, and it has not been up or given up."""

    away_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """How long a client has not heard the broker whose stream it wants to resume, at most."""

    has_given_up: bool = False
    """The broker has given this link up, and it has not been up since."""

    lane: Position = 0
    """Of a broker's link: the number of its epoch (overlay/epochs/)."""

    is_in_use: bool = True
    """The epoch of the lane is in use; not one that is being built."""

    only_asks: bool = False
    """The other end is to dial; the caller only asks whether the epoch of the lane is over."""

    @property
    def protocol(self) -> ProtocolVersion:
        return ProtocolVersion(self.version, self.minor)


class Welcome(Wired, frozen=True, kw_only=True, tag=21):
    """The broker's answer: its name, and the stream of this connection.

    If that is not the stream of the Hello, both sides start from nothing.
    """

    name: Name
    stream: Text
    received: Position
    heartbeat_s: Annotated[float, msgspec.Meta(gt=0)] = HEARTBEAT_S
    """How often both sides send something at least: the shorter of what the two want."""

    was_known: bool = False
    """The broker remembers the caller, but the caller has no stream to resume."""

    version: int = PROTOCOL.major
    minor: int = PROTOCOL.minor
    """Of the protocol version, which is `version`.`minor`."""

    generation: Position = 0
    """Of the client's claim to its name."""

    turn: Position = 0
    """Of a new link: it is pending, with this turn, until its ends know that it closes no cycle; 0
    if it is up at once (overlay/link_proposals.py)."""

    kept_all: bool = False
    """The broker has failed and lost the stream, but others keep what the client lacks."""

    @property
    def protocol(self) -> ProtocolVersion:
        return ProtocolVersion(self.version, self.minor)


@final
class Acknowledge(Wired, frozen=True, kw_only=True, tag=22):
    """How many numbered frames were received.  Also the heartbeat."""

    received: Position


@final
class Goodbye(Wired, frozen=True, kw_only=True, tag=23):
    """The stream ends here, and why."""

    reason: str
    for_good: bool = False
    """Of a broker: it was drained, and is not expected back."""

    name_is_taken: bool = False
    """Another client has the name of this one, which should not call again."""

    closes_cycle: bool = False
    """A link is refused, because there is another way between its ends."""

    linked_as: str = ""
    """A link is refused, because its ends are linked already, or there is another way: the name of
    the broker."""

    news: EpochNews | None = None
    """A link is refused, because the epoch of its lane is over: what is in use instead."""


class Dropped(Wired, frozen=True, kw_only=True, tag=24):
    """How many publications are missing here: the subscriber was too slow, or away too long."""

    count: int


@final
class Stayed(Wired, frozen=True, kw_only=True, tag=25):
    """A client that was asked to move could not, and the reason."""

    reason: Text


@final
class MoveCompleted(Wired, frozen=True, kw_only=True, tag=36):
    """To the new broker: the client has completed its move from the broker `source`."""

    source: Text
    session: Text = ""
    """The id that came with the request to move, if there was one."""


@final
class MeasureRoundTrips(Wired, frozen=True, kw_only=True, tag=27):
    """A broker asks a client for its round trips to some brokers (the thesis's pings)."""

    question: Position
    brokers: Annotated[list[tuple[Text, Text]], msgspec.Meta(max_length=BROKERS_ASKED_MAX)]
    """Names and addresses."""

    within_s: Annotated[float, msgspec.Meta(gt=0)] = 2.0


@final
class RoundTrips(Wired, frozen=True, kw_only=True, tag=28):
    """The answer, in the order of the question; None for brokers that did not answer."""

    question: Position
    seconds: Annotated[list[RoundTrip | None], msgspec.Meta(max_length=BROKERS_ASKED_MAX)]


@final
class ProbeRequest(Wired, frozen=True, kw_only=True, tag=29):
    """Asks for the broker's name, instead of a Hello; nothing follows."""


@final
class ProbeReply(Wired, frozen=True, kw_only=True, tag=30):
    """The answer to a ProbeRequest."""

    name: Name


Handshake: TypeAlias = Hello | Welcome | ProbeRequest | ProbeReply
Signal: TypeAlias = Acknowledge | Goodbye

#: What each kind of peer may send after the handshake.
FromClient: TypeAlias = (
    Publication
    | Advertisement
    | Unadvertisement
    | Subscription
    | Unsubscription
    | MovingRequest
    | Sweep
    | Stayed
    | MoveCompleted
    | RoundTrips
    | ChannelRequest
    | StatusRequest
    | Signal
)
FromBroker: TypeAlias = (
    Publication | RoutingMessage | PartMessage | MeshMessage | Letter | LinkMessage | Signal
)
ToClient: TypeAlias = (
    Publication | Notice | Dropped | MeasureRoundTrips | ChannelNotice | NetworkStatus | Signal
)
Frame: TypeAlias = (
    Message
    | Notice
    | Dropped
    | MeasureRoundTrips
    | Stayed
    | MoveCompleted
    | RoundTrips
    | ChannelRequest
    | ChannelNotice
    | LinkMessage
    | StatusRequest
    | NetworkStatus
    | Signal
    | Handshake
)

#: The kinds of frames that this version knows, by the tags they start with.
KINDS: dict[int, type[Wired]] = {kind.__struct_config__.tag: kind for kind in get_args(Frame)}


def _encode_filter(value: object) -> str:
    assert isinstance(value, Filter), f"{type(value)} cannot be encoded in a frame"
    return value.padres()


def _decode_filter(kind: type, value: object) -> Filter:
    assert kind is Filter
    if not isinstance(value, str):
        raise PeerError("a filter must be text")
    return Filter.parse(value)


_encoder = msgspec.msgpack.Encoder(enc_hook=_encode_filter)
encode_body = _encoder.encode

# msgspec's decoders of unions have no precise type; the annotations give them one.
decode_from_client: Callable[[bytes], FromClient] = msgspec.msgpack.Decoder(
    FromClient, dec_hook=_decode_filter
).decode
decode_from_broker: Callable[[bytes], FromBroker] = msgspec.msgpack.Decoder(
    FromBroker, dec_hook=_decode_filter
).decode
decode_to_client: Callable[[bytes], ToClient] = msgspec.msgpack.Decoder(
    ToClient, dec_hook=_decode_filter
).decode
decode_hello: Callable[[bytes], Hello | ProbeRequest | Goodbye] = msgspec.msgpack.Decoder(
    Hello | ProbeRequest | Goodbye
).decode
decode_probe_reply: Callable[[bytes], ProbeReply | Goodbye] = msgspec.msgpack.Decoder(
    ProbeReply | Goodbye
).decode
decode_welcome: Callable[[bytes], Welcome | Goodbye] = msgspec.msgpack.Decoder(
    Welcome | Goodbye
).decode


def encode(frame: Frame, hops: int = 0) -> bytes:
    return framed(encode_body(frame), hops)


def framed(body: bytes, hops: int = 0) -> bytes:
    return HEADER.pack(len(body), hops) + body


def malformed(error: Exception) -> PeerError:
    """The error for a frame that msgspec, or the parser of filters, does not accept."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return error if isinstance(error, PeerError) else PeerError(f"malformed frame: {reason}")


#: What decoding arbitrary bytes may raise.
DECODE_ERRORS = (msgspec.DecodeError, GodwitError, UnicodeDecodeError, RecursionError)


def is_of_later_version(body: bytes, peer: ProtocolVersion) -> bool:
    """Whether a frame that was not accepted is of a kind that only the peer's version has."""
    start = _integers(body) if peer.minor > PROTOCOL.minor else []
    return bool(start) and start[0] not in KINDS


def hello_version(body: bytes) -> ProtocolVersion | None:
    """The major version of a Hello that this version cannot read; None if it is no Hello."""
    start = _integers(body)
    is_hello = len(start) > 1 and KINDS.get(start[0]) is Hello
    return ProtocolVersion(start[1], 0) if is_hello else None


def _integers(body: bytes) -> list[int]:
    """The integers with which the array in a body starts."""
    try:
        elements = msgspec.msgpack.decode(body, type=list[object])
    except DECODE_ERRORS:
        return []
    return list(takewhile(lambda each: type(each) is int, elements))  # type: ignore[arg-type]
