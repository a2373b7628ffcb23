"""The messages of mediation: control publications for one broker.

Paper    Cheung, thesis 4.1.4; it does not name the messages.

    local session     offloader                acceptor
                          |-- LbRequest ---------->|
                          |<---------- LbReply ----|   status; if OK its load and CSS
                          |-- Migrate ------------>|   how many clients come, and until when
                          |<---------- LbDone -----|
                          |<----- SessionEnd ----->|   instead of any of these

    global session    head                     head
                          |-- GlobalRequest ------>|
                          |<---- GlobalReply ------|
                          |-- GlobalKeep --------->|   as long as it lasts
                          |<----- GlobalEnd ------>|
                      edge --> its head: EdgeRequest; head --> its edges: PieLease

Departs  1. The body is the payload, compressed, in as many publications as it needs: the CSS of a
            broker may be large.  What routes it are attributes: `to`, `from`, `kind`, `session`.
         2. Migrate, SessionEnd, GlobalKeep and GlobalEnd are ours: every wait has an end on both
            sides.  PieLease expires: edge brokers do not depend on their head to unsubscribe.

Y1  The parts of a message arrive in order, or not at all: control publications of one broker do not
    overtake each other.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from godwit.broker.modules import Request
from godwit.content.filters import Filter
from godwit.content.messages import Publication
from godwit.content.values import CheckedValue
from godwit.policies.offload.broker_load import BrokerInfo, OffloadAction
from godwit.policies.offload.control_post import ControlPost
from godwit.policies.offload.load_status import LoadStatus

LB = "$LB"
#: The advertisement and the subscription of these messages.
WORD = "lb"
#: Bytes in one publication: on a link of 0.5 Mbit/s it takes a second.
PART_BYTES = 65_536
#: More parts than any CSS needs; a sender that claims more is wrong.
PARTS_MAX = 1_024
#: Incomplete messages that are kept.
INCOMPLETE_MAX = 16


class _Body(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    session: str


class LbRequest(_Body, frozen=True, kw_only=True):
    """Offloader to acceptor: will you take load?"""

    action: OffloadAction


class LbReply(_Body, frozen=True, kw_only=True):
    """Acceptor to offloader."""

    status: LoadStatus
    """OK if the acceptor agrees."""

    info: BrokerInfo | None = None
    css: tuple[str, ...] = ()
    """The covering subscription set of the acceptor, as texts."""

    address: str = ""
    """Where clients connect to the acceptor."""


class Migrate(_Body, frozen=True, kw_only=True):
    """Offloader to acceptor: so many clients are asked to come."""

    clients: int
    within_s: float
    stall_s: float
    """If none arrives for so long, no more are expected."""

    predicted: BrokerInfo
    """The acceptor's load afterwards, as the offloader estimates it."""


class LbDone(_Body, frozen=True, kw_only=True):
    """Acceptor to offloader: all that come have arrived."""

    arrived: int


class SessionEnd(_Body, frozen=True, kw_only=True):
    """To the other side, from either: the session is over."""

    reason: str


class EdgeRequest(_Body, frozen=True, kw_only=True):
    """Edge broker to its head: overloaded, and no edge broker of the cluster can help."""


class GlobalRequest(_Body, frozen=True, kw_only=True):
    """Head to head: will your cluster balance with mine?"""


class GlobalReply(_Body, frozen=True, kw_only=True):
    """The answer to a GlobalRequest."""

    status: LoadStatus


class GlobalKeep(_Body, frozen=True, kw_only=True):
    """Head to head: the global session goes on."""


class GlobalEnd(_Body, frozen=True, kw_only=True):
    """Head to head: the global session is over."""

    reason: str


class PieLease(_Body, frozen=True, kw_only=True):
    """Head to its edge brokers: subscribe to the loads of another cluster."""

    cluster: str
    for_s: float
    """How long, unless it is repeated; 0 ends it."""


MediationMessage: TypeAlias = (
    LbRequest
    | LbReply
    | Migrate
    | LbDone
    | SessionEnd
    | EdgeRequest
    | GlobalRequest
    | GlobalReply
    | GlobalKeep
    | GlobalEnd
    | PieLease
)

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[MediationMessage] = msgspec.msgpack.Decoder(MediationMessage)


def lb_advertisement(broker: str) -> Filter:
    return Filter.parse(
        f"class = '{LB}' and from = '{broker}' and to is a string and kind is a string"
        " and session is a string and part is a number and parts is a number"
    )


def lb_subscription(broker: str) -> Filter:
    return Filter.parse(f"class = '{LB}' and to = '{broker}'")


def css_texts(filters: Sequence[Filter]) -> tuple[str, ...]:
    return tuple(str(filter) for filter in filters)


def css_filters(texts: Sequence[str]) -> tuple[Filter, ...]:
    return tuple(Filter.parse(text) for text in texts)


def send(post: ControlPost, broker: str, to: str, message: MediationMessage) -> list[Request]:
    """Publish a message for one broker."""
    body = zlib.compress(_encoder.encode(message))
    parts = [body[at : at + PART_BYTES] for at in range(0, len(body), PART_BYTES)]
    requests: list[Request] = []
    for number, part in enumerate(parts):
        content: dict[str, CheckedValue] = {
            "class": LB,
            "from": broker,
            "to": to,
            "kind": type(message).__name__,
            "session": message.session,
            "part": number,
            "parts": len(parts),
        }
        requests += post.publish(WORD, content, part)
    return requests


class MediationReader:
    """Puts the parts of messages together."""

    def __init__(self) -> None:
        self._incomplete: dict[tuple[str, str, str], list[bytes]] = {}

    def read(self, publication: Publication) -> tuple[str, MediationMessage | None]:
        """The sender, and the message if it is complete and can be read."""
        content = publication.content
        sender = str(content.get("from", ""))
        part, parts = content.get("part"), content.get("parts")
        if not isinstance(part, int) or not isinstance(parts, int) or not 0 < parts <= PARTS_MAX:
            return sender, None
        key = sender, str(content.get("session")), str(content.get("kind"))
        known = self._incomplete.pop(key, [])
        if part != len(known) and part != 0:  # A part was lost with a broker or link.
            return sender, None
        known = [*known, publication.payload] if part else [publication.payload]
        if part + 1 < parts:
            self._incomplete[key] = known
            if len(self._incomplete) > INCOMPLETE_MAX:
                del self._incomplete[next(iter(self._incomplete))]
            return sender, None
        try:
            return sender, _decoder.decode(zlib.decompress(b"".join(known)))
        except (zlib.error, msgspec.MsgspecError):
            return sender, None
