"""What travels between clients and brokers.  Nouns only: routing lives in overlay/.

Messages are msgspec structs: as cheap to make as a tuple, frozen, and ready for a wire.  An
advertisement or subscription id is `<client>/<anything without a slash>`, so ids are unique
wherever client names are, and a broker can tell whose they are.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, NewType, TypeAlias, final

import msgspec

from godwit.content.filters import Filter
from godwit.content.regions import NOTHING, Constraint, OneOf, Pattern
from godwit.content.values import CheckedValue, Record

AdvertisementId = NewType("AdvertisementId", str)
SubscriptionId = NewType("SubscriptionId", str)

#: Classes of control publications start with this; see `is_control_filter`.
CONTROL_CLASS_PREFIX = "$"

ID_LENGTH_MAX = 256
PAYLOAD_BYTES_MAX = 1_048_576
SEQUENCE_MAX = 2**63 - 1

#: Ids, sequence number, flags and time stamps of one message, about.
HEADER_BYTES = 40

#: Which move of a client this is about.
MoveNumber: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=SEQUENCE_MAX)]
ShortText: TypeAlias = Annotated[str, msgspec.Meta(max_length=ID_LENGTH_MAX)]


class Wired(msgspec.Struct, frozen=True, array_like=True):
    """A message: on a wire it is an array that starts with the tag of its kind."""


class Advertisement(Wired, frozen=True, kw_only=True, tag=1):
    """A client announces what it is going to publish.  Floods the overlay.

    One with a higher edition than is known says that the publisher has moved, and is now where
    this message comes from (the thesis's MUM).  It goes where the former edition came from.
    """

    id: AdvertisementId
    filter: Filter
    edition: int = 0
    """Which use of the id this is: a client that uses one again counts up, and takes only a
    confirmation of the same edition for an answer."""


class Unadvertisement(Wired, frozen=True, kw_only=True, tag=2):
    """Withdraws an advertisement; travels wherever the advertisement travelled."""

    id: AdvertisementId


class AdvertisementInEffect(Wired, frozen=True, kw_only=True, tag=3):
    """From here on, what is published under the advertisement reaches every subscription.

    It follows the last publication from a former place of the publisher (the thesis's MCM).
    """

    id: AdvertisementId
    edition: int = 0


class Subscription(Wired, frozen=True, kw_only=True, tag=4):
    """A client's standing interest in every publication that `filter` matches."""

    id: SubscriptionId
    filter: Filter
    edition: int = 0
    """Which use of the id this is: a client that uses one again counts up, and takes only a
    confirmation of the same edition for an answer."""

    local_only: bool = False
    """Match at the subscriber's own broker and tell no other."""


class Unsubscription(Wired, frozen=True, kw_only=True, tag=5):
    """Withdraws a subscription; travels wherever the subscription travelled."""

    id: SubscriptionId


class SubscriptionInEffect(Wired, frozen=True, kw_only=True, tag=6):
    """From here on, every matching publication will be delivered."""

    id: SubscriptionId
    edition: int = 0


@final
class Publication(Wired, frozen=True, kw_only=True, tag=7):
    """One event.  It carries no address: its content is its address.

    (`publisher`, `sequence`) is its identity.  Brokers pass it on untouched; what changes from
    hop to hop travels beside it, in `Received` and `Send`.
    """

    publisher: str
    sequence: Annotated[int, msgspec.Meta(ge=0, le=SEQUENCE_MAX)]
    advertisement: Annotated[AdvertisementId, msgspec.Meta(max_length=ID_LENGTH_MAX)]
    content: dict[str, CheckedValue]
    payload: Annotated[bytes, msgspec.Meta(max_length=PAYLOAD_BYTES_MAX)] = b""
    """Carried along, never matched."""

    ttl_hops: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """How many overlay links it may cross; None is all of them.  For control publications."""

    is_control: bool = False
    """Set by the first broker: served before normal publications."""

    accepted_s: float = 0.0
    """Set by the first broker: when it took responsibility for the publication."""

    size_bytes: int = 0
    """Set by the first broker: the publication as it travels."""

    trace: int = 0
    """Set by the first broker, if a policy there wants to know how far it gets; else 0."""


@final
class Letter(Wired, frozen=True, kw_only=True, tag=9):
    """From a module to the module of the same name in a neighbour, behind all publications.

    Control publications are for whoever asked for their class and overtake others; a letter is
    for one neighbour and keeps its place in the queues.
    """

    module: str
    body: bytes
    """Only the modules know what is in it."""


@final
class Present(Wired, frozen=True, kw_only=True, tag=12):
    """There is such a broker in this direction.  Floods, when its clients begin to move away."""

    broker: ShortText


@final
class Absent(Wired, frozen=True, kw_only=True, tag=13):
    """There is no such broker in this direction any more."""

    broker: ShortText


@final
class Sweep(Wired, frozen=True, kw_only=True, tag=14):
    """Runs from a client's new broker to its old one, behind all publications on the way."""

    client: ShortText
    to: ShortText
    move: MoveNumber


@final
class Swept(Wired, frozen=True, kw_only=True, tag=15):
    """To the client, by its old broker: nothing follows that the new one does not have."""

    move: MoveNumber


class Telling(IntEnum):
    """How much a broker has told a neighbour of what it knows from its other sides."""

    NOT_ALL = 0
    ADVERTISEMENTS = 1
    SUBSCRIPTIONS_TOO = 2


@final
class Told(Wired, frozen=True, kw_only=True, tag=26):
    """To a neighbour: these are all from my side; what else I told you once is no more."""

    telling: Telling


@final
class Depart(Wired, frozen=True, kw_only=True, tag=16):
    """A client tells its broker that it is about to move away."""

    move: MoveNumber


@final
class Pause(Wired, frozen=True, kw_only=True, tag=17):
    """A client asks to be told when all that it sent before was handled."""

    move: MoveNumber


@final
class Paused(Wired, frozen=True, kw_only=True, tag=18):
    """The answer."""

    move: MoveNumber


@final
class MoveTo(Wired, frozen=True, kw_only=True, tag=19):
    """A broker asks a client to move to another one (the thesis's migrate)."""

    address: ShortText = ""
    """Where to call: godwit://HOST:PORT; nothing in a simulation."""

    broker: ShortText = ""
    """Who should answer there; nobody in particular if it is not given."""

    within_s: Annotated[float, msgspec.Meta(gt=0)] = 5.0
    """A client that has not arrived after so long stays."""


class Refusal(Wired, frozen=True, kw_only=True, tag=8):
    """A broker did not do what a client asked; `about` names the request, `reason` the rule."""

    about: str
    reason: str


RoutingMessage: TypeAlias = (
    Advertisement
    | Unadvertisement
    | AdvertisementInEffect
    | Subscription
    | Unsubscription
    | SubscriptionInEffect
    | Present
    | Absent
    | Sweep
    | Told
)
#: What a client that moves asks of its brokers, besides what every client asks.
MovingRequest: TypeAlias = Depart | Pause
OtherMessage: TypeAlias = RoutingMessage | MovingRequest | Letter
Message: TypeAlias = Publication | OtherMessage
Notice: TypeAlias = AdvertisementInEffect | SubscriptionInEffect | Refusal | Swept | Paused | MoveTo


def is_control_content(content: Record) -> bool:
    """Is a publication with this content a control publication?"""
    name = content.get("class")
    return isinstance(name, str) and name.startswith(CONTROL_CLASS_PREFIX)


def is_control_filter(filter: Filter) -> bool:
    """Does `filter` ask for control publications?  Only one that names their class does.

    So `x is present` sees no control publication that has an x: control traffic is invisible
    to clients that did not ask for it, and covering never mixes the two.
    """
    constraint = filter.constraints.get("class", Constraint())
    if constraint.numbers is not NOTHING or constraint.booleans is not NOTHING:
        return False
    match constraint.strings:
        case OneOf(values=values) if values:
            return all(str(value).startswith(CONTROL_CLASS_PREFIX) for value in values)
        case Pattern(prefix=prefix):
            return prefix.startswith(CONTROL_CLASS_PREFIX)
        case _:
            return False


def size_bytes(message: Message | Notice) -> int:
    """How many bytes `message` takes on a link, near enough for bandwidth models."""
    if isinstance(message, Publication):
        # Stamped once by the first broker: encoding at each hop would dominate.
        return message.size_bytes or HEADER_BYTES + body_bytes(message.content, message.payload)
    match message:
        case Advertisement() | Subscription():
            return HEADER_BYTES + len(message.filter.padres())
        case Refusal():
            return HEADER_BYTES + len(message.reason)
        case Letter():
            return HEADER_BYTES + len(message.body)
        case _:
            return HEADER_BYTES


def body_bytes(content: Record, payload: bytes) -> int:
    return len(msgspec.msgpack.encode(content)) + len(payload)
