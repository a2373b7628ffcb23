"""Messages between clients and brokers, as data; overlay/ routes them.

They are msgspec structs: as cheap to make as a tuple, frozen, and ready for a wire.  An
advertisement or subscription id is `<client>/<anything without a slash>`, so ids are unique if
client names are, and a broker can derive the client from the id.

A client that has a name of its own choice and is started again is another *incarnation* of itself.
Its ids say which: `<client>/<incarnation>~<serial>`.  Sequence numbers belong to an incarnation:
they rise within it, and the next one begins from the start.  See docs/decisions/0017-names.md.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, NamedTuple, NewType, TypeAlias, final

import msgspec

from godwit.content.filters import Filter
from godwit.content.mesh_messages import MeshMessage
from godwit.content.regions import NOTHING, Constraint, OneOf, Pattern
from godwit.content.values import CheckedValue, Record
from godwit.content.wired import ID_LENGTH_MAX, ShortText, Wired

AdvertisementId = NewType("AdvertisementId", str)
SubscriptionId = NewType("SubscriptionId", str)

#: Classes of control publications start with this; see `is_control_filter`.
CONTROL_CLASS_PREFIX = "$"

#: In an id, between the incarnation and what follows; no name has it.
INCARNATION_END = "~"
PAYLOAD_BYTES_MAX = 1_048_576
SEQUENCE_MAX = 2**63 - 1
#: Publishers whose lost publications are counted one by one.
PUBLISHERS_COUNTED_MAX = 1_000

#: Approximate size of the ids, sequence number, flags and time stamps of one message.
HEADER_BYTES = 40

#: How long a move may take unless the request says otherwise.
MOVE_S = 5.0
#: The number of a move of a client.
MoveNumber: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=SEQUENCE_MAX)]


class Advertisement(Wired, frozen=True, kw_only=True, tag=1):
    """A client announces what it is going to publish.  Floods the overlay.

    A higher edition than the known one means that the publisher has moved, and is now where this
    message comes from (the thesis's MUM).  It goes where the former edition came from.
    """

    id: AdvertisementId
    filter: Filter
    edition: int = 0
    """Counts the uses of the id: a client that reuses one increments it, and accepts only a
    confirmation of the same edition."""


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
    """Counts the uses of the id: a client that reuses one increments it, and accepts only a
    confirmation of the same edition."""

    local_only: bool = False
    """Match at the subscriber's own broker only."""

    anchor: ShortText = ""
    """Between brokers of a mesh: where its publications go (overlay/mesh/anchors.py)."""


class Unsubscription(Wired, frozen=True, kw_only=True, tag=5):
    """Withdraws a subscription; travels wherever the subscription travelled."""

    id: SubscriptionId


class SubscriptionInEffect(Wired, frozen=True, kw_only=True, tag=6):
    """From here on, every matching publication will be delivered."""

    id: SubscriptionId
    edition: int = 0


class Mark(NamedTuple):
    """What a policy module of the first broker attached to a publication."""

    module: ShortText
    value: int


NO_MARKS: tuple[Mark, ...] = ()


@final
class Publication(Wired, frozen=True, kw_only=True, tag=7):
    """One event, addressed by its content alone.  Brokers forward it unchanged; what changes from
    hop to hop is beside it, in `Received` and `Send`.  (`incarnation_of`, `sequence`) identify it.
    """

    publisher: str
    sequence: Annotated[int, msgspec.Meta(ge=0, le=SEQUENCE_MAX)]
    advertisement: Annotated[AdvertisementId, msgspec.Meta(max_length=ID_LENGTH_MAX)]
    content: dict[str, CheckedValue]
    payload: Annotated[bytes, msgspec.Meta(max_length=PAYLOAD_BYTES_MAX)] = b""
    """Delivered, never matched."""

    ttl_hops: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Overlay links it may cross; None is any number.  For control publications."""

    is_control: bool = False
    """Set by the first broker: served before normal publications."""

    accepted_s: float = 0.0
    """Set by the first broker: when it accepted the publication."""

    size_bytes: int = 0
    """Set by the first broker: the size on a link."""

    marks: tuple[Mark, ...] = NO_MARKS
    """Set by the first broker for its policy modules, at most one for each."""

    def mark(self, module: str) -> int:
        """The mark of a module, 0 if there is none."""
        for mark in self.marks:
            if mark.module == module:
                return mark.value
        return 0


@final
class Letter(Wired, frozen=True, kw_only=True, tag=9):
    """From a module to the module of the same name in a neighbour, behind all publications.

    Control publications go to the subscribers of their class and overtake others; a letter goes
    to one neighbour and keeps its place in the queues.
    """

    module: str
    body: bytes
    """In a format of the modules."""


@final
class Present(Wired, frozen=True, kw_only=True, tag=12):
    """The broker is in this direction.  Floods when its clients begin to move away."""

    broker: ShortText


@final
class Absent(Wired, frozen=True, kw_only=True, tag=13):
    """The broker is no longer in this direction."""

    broker: ShortText


@final
class Sweep(Wired, frozen=True, kw_only=True, tag=14):
    """Goes from a client's new broker to its old one, behind all publications on the path."""

    client: ShortText
    to: ShortText
    move: MoveNumber
    by: ShortText = ""
    """In clusters: the broker that asks all others (overlay/clusters/settling.py)."""

    origin: ShortText = ""
    """In clusters: the broker that answers; empty in a question."""

    age_s: float = 0.0
    """How long ago the client had begun to move when it sent this."""


@final
class Swept(Wired, frozen=True, kw_only=True, tag=15):
    """From the old broker to the client: whatever follows, the new broker has, too."""

    move: MoveNumber


class ResyncScope(IntEnum):
    """How much of its tables a broker has sent to a neighbour."""

    NOT_ALL = 0
    ADVERTISEMENTS = 1
    SUBSCRIPTIONS_TOO = 2


@final
class ResyncDone(Wired, frozen=True, kw_only=True, tag=26):
    """Resync complete up to `scope`: whatever was not repeated is withdrawn."""

    scope: ResyncScope


@final
class Last(Wired, frozen=True, kw_only=True, tag=55):
    """No publication follows on this lane: all brokers behind the sender use the next epoch."""


class ClusterStep(IntEnum):
    """What brokers in clusters that balance their load tell each other (overlay/clusters/)."""

    FLUSH = 0
    """Is with the receiver, and with all whom it passes publications on to: answer when it is."""

    FLUSHED = 1
    RING_SHARE = 2
    """Pass what follows of this publisher on to these clusters."""

    SUB_STOP = 3
    """The sender matches nothing: do not send it new subscriptions."""

    SUB_RESUME = 4
    SUB_RESENT = 5
    """The sender of SUB_RESUME has all subscriptions of this broker again."""

    HELP = 6
    """Match for the sender what follows; `number` is the number of the request."""

    HELPS = 7
    CANNOT_HELP = 8
    HELP_OVER = 9


@final
class ClusterNotice(Wired, frozen=True, kw_only=True, tag=73):
    """One step of steering publications in clusters; behind those that were sent before."""

    step: ClusterStep
    number: MoveNumber = 0
    publisher: ShortText = ""
    clusters: tuple[int, ...] = ()


@final
class NameClaim(Wired, frozen=True, kw_only=True, tag=40):
    """A session has this name, and is in this direction.  Floods the overlay."""

    name: ShortText
    generation: MoveNumber
    """Rises with each take-over."""

    incarnation: ShortText
    attachment: MoveNumber
    """Counts the connections of this incarnation: the latest one is where it is."""

    @property
    def rank(self) -> tuple[int, str, int]:
        """Where two claims meet, the higher one wins."""
        return self.generation, self.incarnation, self.attachment


@final
class NameClaimInEffect(Wired, frozen=True, kw_only=True, tag=41):
    """All brokers in this direction know the claim."""

    claim: NameClaim


@final
class NameRelease(Wired, frozen=True, kw_only=True, tag=42):
    """No session has this name any longer, as far as the sender knows."""

    name: ShortText


@final
class NameRequest(Wired, frozen=True, kw_only=True, tag=43):
    """Another client wants this name; travels to the broker of the session that has it."""

    name: ShortText
    incarnation: ShortText
    take_over: bool
    way: tuple[ShortText, ...]
    """The brokers that it has passed; the answer goes back along them."""


@final
class NameAnswer(Wired, frozen=True, kw_only=True, tag=44):
    """The answer to a NameRequest."""

    name: ShortText
    incarnation: ShortText
    is_free: bool
    reason: str
    way: tuple[ShortText, ...]
    is_final: bool = True
    """False if another attempt may succeed before long."""


NameMessage: TypeAlias = NameClaim | NameClaimInEffect | NameRelease | NameRequest | NameAnswer


@final
class PartLost(Wired, frozen=True, kw_only=True, tag=50):
    """The broker `by` has given up the link to `broker`: that part of the network is missing.

    Floods.  A neighbour that names itself in both says that it had given up the receiver.
    """

    broker: ShortText
    by: ShortText
    since_s: float
    """When `broker` was last heard, in seconds since 1970."""

    reason: str = ""
    lost: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Publications that waited for the part and were dropped; some may have arrived."""

    lost_by: Annotated[dict[ShortText, int], msgspec.Meta(max_length=PUBLISHERS_COUNTED_MAX)] = (
        msgspec.field(default_factory=dict)
    )
    """The same by publisher; some are left out if there are too many."""


@final
class PartReturned(Wired, frozen=True, kw_only=True, tag=51):
    """A part that was lost is back, and what it holds is in the tables: publications reach it."""

    broker: ShortText
    by: ShortText
    since_s: float


@final
class PartCheck(Wired, frozen=True, kw_only=True, tag=52):
    """Travels to every broker behind a link, behind the advertisements that went there."""

    origin: ShortText
    number: Annotated[int, msgspec.Meta(ge=0, le=SEQUENCE_MAX)]


@final
class PartChecked(Wired, frozen=True, kw_only=True, tag=53):
    """The answer of all those brokers, behind the subscriptions that they sent."""

    origin: ShortText
    number: Annotated[int, msgspec.Meta(ge=0, le=SEQUENCE_MAX)]


@final
class GapNotice(Wired, frozen=True, kw_only=True, tag=54):
    """To a client: a part of the network is missing, or is back."""

    broker: ShortText
    by: ShortText
    since_s: float
    reason: str = ""
    lost: int = 0
    own_lost: int = 0
    """How many of `lost` this client has published."""

    is_over: bool = False


@final
class Depart(Wired, frozen=True, kw_only=True, tag=16):
    """A client is about to move away from its broker."""

    move: MoveNumber


@final
class Pause(Wired, frozen=True, kw_only=True, tag=17):
    """A client requests a notice when all that it sent before was handled."""

    move: MoveNumber


@final
class Paused(Wired, frozen=True, kw_only=True, tag=18):
    """The answer to Pause."""

    move: MoveNumber


@final
class MoveTo(Wired, frozen=True, kw_only=True, tag=19):
    """A broker asks a client to move to another one (the thesis's migrate)."""

    address: ShortText = ""
    """godwit://HOST:PORT; empty in a simulation."""

    broker: ShortText = ""
    """The broker expected there; any if empty."""

    within_s: Annotated[float, msgspec.Meta(gt=0)] = MOVE_S
    """A client that has not arrived after this time stays."""

    session: ShortText = ""
    """An id that the client takes to its new broker, for the policy that asked for the move."""


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
    | ResyncDone
    | Last
    | ClusterNotice
    | NameMessage
)
#: Requests of a client that moves, besides those of every client.
MovingRequest: TypeAlias = Depart | Pause
#: What brokers tell each other about parts of the network that are missing.
PartMessage: TypeAlias = PartLost | PartReturned | PartCheck | PartChecked
OtherMessage: TypeAlias = RoutingMessage | PartMessage | MovingRequest | Letter | MeshMessage
Message: TypeAlias = Publication | OtherMessage
Notice: TypeAlias = (
    AdvertisementInEffect | SubscriptionInEffect | Refusal | Swept | Paused | MoveTo | GapNotice
)


def incarnation_of(publication: Publication) -> str:
    """Who published it, and in which incarnation: sequence numbers rise among equal ones.

    The publisher's name alone if its ids have no incarnation: it is never started twice.
    """
    return publication.advertisement.rpartition(INCARNATION_END)[0] or publication.publisher


def is_control_content(content: Record) -> bool:
    """Whether a publication with this content is a control publication."""
    name = content.get("class")
    return isinstance(name, str) and name.startswith(CONTROL_CLASS_PREFIX)


def is_control_filter(filter: Filter) -> bool:
    """Whether `filter` is for control publications: only one that names their class is.

    So `x is present` matches no control publication that has an x: control traffic is invisible
    to clients that did not subscribe to it, and covering never mixes the two.
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
    """Bytes of `message` on a link, exact enough for bandwidth models."""
    if type(message) is Publication:
        # Set once by the first broker: encoding at each hop would dominate.
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
