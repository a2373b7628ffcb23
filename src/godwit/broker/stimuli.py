"""Everything that can happen to a broker: the input of its state machine."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar, TypeAlias, final

import msgspec

from godwit.content.link_messages import NetworkShape
from godwit.content.messages import Message, NameClaim, NameRequest, Publication


@final
class Neighbour(msgspec.Struct, frozen=True, order=True, cache_hash=True, omit_defaults=True):
    """A broker one overlay link away."""

    kind: ClassVar[str] = "neighbour"
    name: str
    lane: int = 0
    """Two brokers may have several links, each with an order of its own; the lane tells them
    apart.  An overlay uses one lane, which is the number of its epoch (overlay/epochs/)."""


@final
class LocalClient(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """A publisher or subscriber attached to this broker."""

    kind: ClassVar[str] = "client"
    name: str


@final
class Module(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """A policy module inside this broker; to the router it is one more client."""

    kind: ClassVar[str] = "module"
    name: str


Hop: TypeAlias = Neighbour | LocalClient | Module


class LinkKind(Enum):
    """What an overlay uses a link for."""

    PRIMARY = "primary"
    """Carries advertisements, subscriptions and publications."""

    SOFT = "soft"
    """A shortcut for publications; it may be closed at any time."""

    CROSS = "cross"
    """Like a primary link, beside a tree of those: what has to reach every broker exactly once,
    as names and gaps, does not travel on it."""


@final
class Started(msgspec.Struct, frozen=True):
    """The driver is ready to perform effects.  The first stimulus, sent once."""


@final
class Received(msgspec.Struct, frozen=True, gc=False):
    """A message arrived from `last_hop`.

    One is made for every message, and cannot be part of a cycle: hence `gc=False`.
    """

    message: Message
    last_hop: Hop
    hops: int = 0
    """Overlay links the message has crossed so far."""


@final
class TimerFired(msgspec.Struct, frozen=True):
    """A timer that a module set has expired."""

    module: str
    name: str


@final
class LinkUp(msgspec.Struct, frozen=True):
    """A new link is up; neither side knows the other."""

    neighbour: Neighbour
    kind: LinkKind = LinkKind.PRIMARY


@final
class Loss(msgspec.Struct, frozen=True):
    """What the end of a link means for clients: a part of the network is missing."""

    since_s: float
    """When the neighbour was last heard."""

    reason: str
    publications: dict[str, int] = {}
    """Publications for the neighbour that were dropped, by publisher."""


@final
class LinkDown(msgspec.Struct, frozen=True):
    """A link is gone for good.  Messages on it are lost; both sides forget each other."""

    neighbour: Neighbour
    loss: Loss | None = None
    """None if nothing is missing: a broker without clients has left."""


@final
class LinkGivenUp(msgspec.Struct, frozen=True):
    """A configured link has not been up, and is not waited for any longer.

    It did not come up in time; or it was known by its address only, and is up under its name, or
    was refused.
    """

    neighbour: Neighbour
    loss: Loss | None = None
    """None if nothing is missing."""

    known_as: Neighbour | None = None
    """Its name, if it was known by its address and is up."""

    reached_over: Neighbour | None = None
    """The neighbour in whose direction it is, if there is another way to it."""


@final
class LinkRestarted(msgspec.Struct, frozen=True):
    """A neighbour restarted with empty tables; this broker still has what the neighbour sent."""

    neighbour: Neighbour


@final
class Recovering(msgspec.Struct, frozen=True):
    """The broker restarted with empty tables; its clients have not reconnected yet."""


@final
class ClientsReturned(msgspec.Struct, frozen=True):
    """The time that clients have to reconnect after a restart of this broker is over."""


@final
class Recovered(msgspec.Struct, frozen=True):
    """The tables of this broker are complete again after a restart, or the time for it is over."""

    missing: dict[Neighbour, Loss] = {}
    """Neighbours that have not sent all."""


@final
class ClientLeft(msgspec.Struct, frozen=True):
    """A client ended its session, or let it expire: whatever it held is withdrawn."""

    client: LocalClient


@final
class ClientArrived(msgspec.Struct, frozen=True):
    """A client completed its move from another broker to this one."""

    client: LocalClient
    source: str
    """The broker it came from."""

    session: str = ""
    """The id that travelled with the request to move; empty for a move without one."""


@final
class LinkAway(msgspec.Struct, frozen=True):
    """The connection to a neighbour is lost, or there is one again; the link is kept."""

    neighbour: Neighbour
    is_away: bool


@final
class NameWish(msgspec.Struct, frozen=True):
    """A client that has chosen its name wants to open a session under it."""

    client: LocalClient
    incarnation: str
    attachment: int
    generation: int
    """Of its last claim, if it had one."""

    take_over: bool
    is_first: bool = True
    """Whether it has had no session yet: if there is one of the name, it is another client's."""


@final
class NameWaitOver(msgspec.Struct, frozen=True):
    """The time is over in which the network may answer the wish of a client."""

    client: LocalClient
    incarnation: str


@final
class NameLeft(msgspec.Struct, frozen=True):
    """The session that had a name is over, or its client does not wait for it any longer."""

    client: LocalClient
    incarnation: str
    attachment: int


class NameContest(msgspec.Struct, frozen=True):
    """A client wants the name of a session of this broker."""

    holder: NameClaim
    request: NameRequest
    has_turned: bool = False
    """Whether the holder was at another broker before: it may still have a session there."""


@final
class NameDecided(msgspec.Struct, frozen=True):
    """Whether the session has ended, in favour of the client that wants its name; or why not."""

    contest: NameContest
    is_free: bool
    reason: str = ""
    is_final: bool = True
    """False if another attempt may succeed before long."""


NameStimulus: TypeAlias = NameWish | NameWaitOver | NameLeft | NameDecided


@final
class Pinged(msgspec.Struct, frozen=True):
    """A client measured its round-trip times to some brokers."""

    module: str
    client: str
    round_trips_s: dict[str, float]
    """Round-trip times by broker; brokers that did not answer are missing."""


@final
class OperatorCommand(msgspec.Struct, frozen=True):
    """An operator tells a module what to do; each module says which commands it knows."""

    module: str
    command: str


@final
class BuildEpoch(msgspec.Struct, frozen=True):
    """Build the routing of the next epoch, beside the present one; repeated, it changes nothing."""

    change: str
    """The id of the change, which the coordinator has given."""

    shape: NetworkShape


@final
class FlipEpoch(msgspec.Struct, frozen=True):
    """The next epoch is committed: local publications go there from now on."""

    change: str
    shape: NetworkShape


@final
class AbortEpoch(msgspec.Struct, frozen=True):
    """The next epoch is given up before it was committed; nor is it built if that is asked late."""

    change: str
    epoch: int


@final
class AdoptEpoch(msgspec.Struct, frozen=True):
    """The broker has restarted, or was away for long, and the network has another shape by now."""

    change: str
    shape: NetworkShape


@final
class Acknowledged(msgspec.Struct, frozen=True):
    """A neighbour has acknowledged what it was sent: it is with all subscribers behind it.

    Only a router with several paths is told (`broker.routing.Multipath`).
    """

    neighbour: Neighbour
    position: int
    """How many normal publications and sweeps, of all since the link was up."""


@final
class Undelivered(msgspec.Struct, frozen=True):
    """A copy that a soft link did not deliver, which is gone: it takes another way."""

    neighbour: Neighbour
    publication: Publication
    hops: int


EpochStimulus: TypeAlias = BuildEpoch | FlipEpoch | AbortEpoch | AdoptEpoch

Stimulus: TypeAlias = (
    Received
    | TimerFired
    | Started
    | LinkUp
    | LinkDown
    | LinkGivenUp
    | LinkRestarted
    | Recovering
    | ClientsReturned
    | Recovered
    | ClientLeft
    | ClientArrived
    | Pinged
    | LinkAway
    | NameStimulus
    | OperatorCommand
    | EpochStimulus
    | Acknowledged
    | Undelivered
)
