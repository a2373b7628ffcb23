"""What a broker asks of an overlay.  Implementations are in overlay/, a folder each.

A router owns the routing tables of one broker.  It receives every message that changes them and
answers with messages to send and requests to confirm.  For a publication it only returns the
destinations, because what happens to a copy (delivery, link, module) is the same in every overlay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

import msgspec

from godwit.broker.effects import EpochFlipped, LinkEffect, NameEffect, Send
from godwit.broker.stimuli import (
    EpochStimulus,
    Hop,
    LinkKind,
    LocalClient,
    Module,
    NameStimulus,
    Neighbour,
)
from godwit.content.filters import Filter
from godwit.content.link_messages import EpochNews, NetworkShape
from godwit.content.mesh_messages import MeshMessage
from godwit.content.messages import (
    Advertisement,
    AdvertisementId,
    AdvertisementInEffect,
    Message,
    NameClaim,
    Paused,
    Present,
    Publication,
    RoutingMessage,
    Subscription,
    SubscriptionInEffect,
    Sweep,
    Swept,
)


@dataclass(frozen=True, slots=True)
class Place:
    """What a router is made from: its broker, the links that exist at the start, settings."""

    broker: str
    links: Mapping[Neighbour, LinkKind] = field(default_factory=dict)
    """Links whose two ends start together, with empty tables.  Others come with `link_up`."""

    expected: Collection[Neighbour] = ()
    """Configured links that have not been up: what is asked for waits until they have told all, or
    are given up, with `link_down`."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the overlay, as the network file has them."""

    lane: int = 0
    """The lane of all its links."""

    @classmethod
    def of(
        cls,
        broker: str,
        neighbours: Iterable[str],
        lane: int = 0,
        settings: Mapping[str, Any] | None = None,
    ) -> Place:
        """A place with primary links only."""
        links = {Neighbour(name, lane): LinkKind.PRIMARY for name in sorted(neighbours)}
        return cls(broker, links, settings=settings or {}, lane=lane)


class Confirm(msgspec.Struct, frozen=True):
    """Notify a client or module: its request is in effect, or its path is swept."""

    to: LocalClient | Module
    notice: AdvertisementInEffect | SubscriptionInEffect | Swept | Paused


class MovedAway(msgspec.Struct, frozen=True):
    """The publisher of an advertisement is at another broker now."""

    publisher: LocalClient | Module
    id: AdvertisementId


class MovedHere(msgspec.Struct, frozen=True):
    """A publisher that was at another broker begins to publish here."""

    publisher: LocalClient | Module


#: What a router may answer.
Answer: TypeAlias = Send | Confirm | MovedAway | MovedHere | LinkEffect | EpochFlipped | NameEffect


class Holding(msgspec.Struct, frozen=True):
    """What a client or module of this broker holds in the overlay."""

    hop: LocalClient | Module
    message: Advertisement | Subscription | Present
    notice: AdvertisementInEffect | SubscriptionInEffect | None
    """What it was told when that came into effect; None if it was not told yet."""


class Tables(msgspec.Struct, frozen=True):
    """The contents of the routing tables by id, for display and for checks."""

    advertisements: dict[str, Hop]
    """The hop that each advertisement came from."""

    subscriptions: dict[str, Hop]
    """The hop that each subscription came from."""

    told: dict[str, list[str]]
    """For each neighbour, the subscriptions that were sent to it."""

    advertised: dict[str, Filter] = {}
    """The filter of each advertisement."""

    wanted: dict[str, Filter] = {}
    """The filter of each subscription."""

    pending: frozenset[str] = frozenset()
    """The subscriptions of clients of this broker that are not in effect yet."""

    announcing: frozenset[str] = frozenset()
    """The advertisements of clients of this broker that are not in effect yet."""


class NameTable(Protocol):
    """The names that clients have claimed, in the whole network."""

    def stimulate(self, stimulus: NameStimulus) -> Sequence[Answer]:
        """A client of this broker wants a name, has left, or has to defend it."""
        ...

    def link_away(self, neighbour: Neighbour, *, is_away: bool) -> Sequence[Answer]:
        """The connection to a neighbour is lost, or there is one again; the link is kept."""
        ...

    def holder(self, name: str) -> Hop | None:
        """Where the session is that has claimed this name."""
        ...

    def sessions(self) -> Sequence[NameClaim]:
        """The claims of clients of this broker."""
        ...

    def enter(self, claim: NameClaim) -> Sequence[Answer]:
        """A client of this broker has this name, in another epoch: claim it in this one."""
        ...


class Routing(Protocol):
    @property
    def names(self) -> NameTable:
        """The names that clients have claimed."""
        ...

    @property
    def neighbours(self) -> Mapping[Neighbour, LinkKind]:
        """The links that are up, with their kinds."""
        ...

    @property
    def subscription_count(self) -> int:
        """Subscriptions in the tables; the matching delay grows with it."""
        ...

    @property
    def advertisement_count(self) -> int:
        """Advertisements in the tables."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether every neighbour has completed its resync."""
        ...

    def handle(self, message: RoutingMessage, last_hop: Hop) -> Sequence[Answer]:
        """Process a message about advertisements or subscriptions."""
        ...

    def link_up(self, neighbour: Neighbour, kind: LinkKind) -> Sequence[Answer]:
        """A new link is up; neither side knows the other."""
        ...

    def link_down(self, neighbour: Neighbour) -> Sequence[Answer]:
        """A link is gone for good, or an expected one was not up in time.

        Withdraw everything that came over it, and wait for it no longer.
        """
        ...

    def link_restarted(self, neighbour: Neighbour) -> Sequence[Answer]:
        """A neighbour restarted: keep what it sent before until its resync is complete."""
        ...

    def recovering(self) -> Sequence[Answer]:
        """The broker restarted; clients and neighbours have not reconnected yet."""
        ...

    def clients_returned(self) -> Sequence[Answer]:
        """After a restart of this broker, the time for clients to reconnect is over."""
        ...

    def recovered(self) -> Sequence[Answer]:
        """After a restart of this broker, the time for neighbours to resync is over."""
        ...

    def holdings(self) -> Iterable[Holding]:
        """What clients and modules of this broker hold."""
        ...

    @property
    def sweeps(self) -> Sequence[Sweep]:
        """Those that wait until their direction is known."""
        ...

    def sources(self, neighbour: Neighbour) -> Collection[Neighbour]:
        """Links whose publications may go on over this one; those of clients may anyway.

        A link that waits until these have ended, which wait for theirs, waits in no cycle.
        """
        ...

    def publisher(self, advertisement: AdvertisementId) -> Hop | None:
        """Where the publisher of an advertisement is."""
        ...

    def destinations(
        self, publication: Publication, last_hop: Hop, hops: int, now_s: float, /
    ) -> Collection[Hop]:
        """Where copies of `publication` go from here: each hop once, never `last_hop`."""
        ...

    def tables(self) -> Tables:
        """A copy of the tables."""
        ...

    def check(self) -> None:
        """Assert the numbered invariants of the tables."""
        ...


@runtime_checkable
class Structured(Protocol):
    """A router whose links follow from a structure, and may form cycles (overlay/clusters/)."""

    def pause(self, client: LocalClient, move: int) -> Sequence[Answer]:
        """Confirm with `Paused` when what the client has published is with all subscribers."""
        ...

    def why_not_linked(self, broker: str) -> str | None:
        """Why a link with this broker is refused; None if it is a part of the structure."""
        ...

    def is_leaving(self, broker: str) -> bool:
        """Whether nothing depends on a broker: what is sent there interests no client."""
        ...

    def forget(self, broker: str) -> None:
        """A broker has left for good, and is not part of the structure any more."""
        ...


@runtime_checkable
class Multipath(Protocol):
    """A router with several paths between two brokers, and soft links (overlay/mesh/).

    Publications of one publisher keep their order because the next one waits where it could
    overtake another on a different path, until that is acknowledged.
    """

    output_utilisation: Callable[[float], float]
    """The use of the broker's output at a time; the broker sets it."""

    def counts(self, neighbour: Neighbour) -> bool:
        """Whether copies on this link are counted, and their acknowledgements awaited."""
        ...

    @property
    def uses_soft_links(self) -> bool:
        """Whether a publication is on a soft link of this broker, or may go there."""
        ...

    def start(self, address: str) -> Sequence[Answer]:
        """The broker has started, and listens there; the address is empty in a simulation."""
        ...

    def receive(self, message: MeshMessage, neighbour: Neighbour) -> Sequence[Answer]:
        """Process a message of another router of this kind."""
        ...

    def has_to_wait(self, publication: Publication, last_hop: Hop, now_s: float) -> bool:
        """Whether a publication, and all that follow it from this hop, must wait."""
        ...

    def preview(
        self, publication: Publication, last_hop: Hop, hops: int, now_s: float, /
    ) -> Collection[Hop]:
        """As `destinations`, of a publication that is not sent: it changes nothing."""
        ...

    def acknowledged(self, neighbour: Neighbour, position: int) -> Sequence[Answer]:
        """A neighbour has acknowledged so many copies; what waits may go on."""
        ...

    def pause(self, client: LocalClient, move: int) -> Sequence[Answer]:
        """Confirm with `Paused` when what the client has published is with all subscribers."""
        ...

    def link_away(self, neighbour: Neighbour, *, is_away: bool) -> None:
        """The connection of a link is lost, or there is one again."""
        ...

    def detour(self, publication: Publication, lost: Neighbour) -> Collection[Neighbour]:
        """Where a copy goes instead that was sent over a soft link, which is gone."""
        ...

    def want_soft_links(self, brokers: Iterable[str]) -> Sequence[Answer]:
        """A policy wants these soft links, and no others."""
        ...


class RouteRing(msgspec.Struct, frozen=True):
    """Let a mate pass publications of a local publisher on to these clusters, instead of here."""

    publisher: str
    clusters: tuple[int, ...]
    to: str | None
    """None: this broker does so itself again."""


class RouteCluster(msgspec.Struct, frozen=True):
    """Let a mate match publications of a publisher for the cluster, instead of this broker."""

    publisher: str
    to: str | None


class StopSubscriptions(msgspec.Struct, frozen=True):
    """Take no new subscriptions of mates, and let another broker match everything."""

    stand_in: str


class ResumeSubscriptions(msgspec.Struct, frozen=True):
    """Take subscriptions again, and match again when the list is complete."""


#: What a module may ask of a router that can be steered.
SteerRequest: TypeAlias = RouteRing | RouteCluster | StopSubscriptions | ResumeSubscriptions


class SteeringStatus(msgspec.Struct, frozen=True):
    mates: tuple[str, ...]
    """Brokers that may help: they are linked."""

    other_clusters: tuple[int, ...]
    """Where publications of local publishers go."""

    rings: dict[tuple[str, int], str]
    """Publishers and clusters whose publications another broker passes on, and that broker."""

    clusters: dict[str, str]
    """Publishers that another broker matches for this one, and that broker."""

    stand_in: str | None
    """Who matches everything for this broker, whose list of subscriptions may lack some."""

    matches_for: tuple[str, ...]
    """Brokers that may hand over publications to be matched here."""

    is_changing: bool
    """Whether changes wait for publications that are under way."""

    subscriptions_in: int
    """Messages about subscriptions that mates have sent so far."""

    subscriptions_out: int


@runtime_checkable
class Steerable(Protocol):
    """A router that lets other brokers do a part of its work (overlay/clusters/)."""

    def steer(self, request: SteerRequest) -> Sequence[Send | LinkEffect]:
        """Change a route, once nothing is under way on the old one."""
        ...

    @property
    def steering(self) -> SteeringStatus: ...


class EpochStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How far a broker is with a change of the network's shape."""

    epoch: int
    """Of the shape in use."""

    phase: str
    change: str = ""
    """The change that is going on, or the last one that was completed."""

    next_epoch: int | None = None
    ended: int = 0
    """The highest number that was used or given up: it is not used again."""


@runtime_checkable
class Reshapable(Protocol):
    """A router whose links can be replaced as a whole (overlay/epochs/)."""

    is_outside: bool
    """Whether the epoch in use has brokers, and this one is not among them."""

    @property
    def is_changing(self) -> bool:
        """Whether it has two epochs."""
        ...

    @property
    def status(self) -> EpochStatus: ...

    @property
    def in_use(self) -> Routing:
        """The router of the epoch that publications of local clients travel in."""
        ...

    @property
    def paths(self) -> Multipath | None:
        """For acknowledgements and soft links, if an epoch has several paths."""
        ...

    def is_structured(self, lane: int) -> bool:
        """Whether the links of this epoch follow from a structure."""
        ...

    def kind_of(self, neighbour: Neighbour) -> LinkKind | None:
        """The kind of a link of any epoch; None if it is not up."""
        ...

    def why_not(self, neighbour: Neighbour) -> str | None:
        """Why a link is refused that its epoch does not have; None if it is not."""
        ...

    def pause(self, client: LocalClient, move: int) -> Sequence[Answer]:
        """Confirm with `Paused` when the client may publish at another broker."""
        ...

    @property
    def news(self) -> EpochNews:
        """The epochs that are in use, for a broker that may have been away."""
        ...

    @property
    def shape(self) -> NetworkShape | None:
        """Of the next epoch, committed or not."""
        ...

    def forget(self, broker: str) -> None:
        """A broker has left for good, and is not part of the shape any more."""
        ...

    def change_epoch(self, stimulus: EpochStimulus) -> Sequence[Answer]:
        """A coordinator changes the shape of the network.  Raises UsageError if it cannot."""
        ...

    def starts_hold(self, message: Message, last_hop: Hop) -> bool:
        """Whether this message has to wait for the end of an epoch, and all that follow it."""
        ...


def in_use(routing: Routing) -> Routing:
    """The router of the epoch in use."""
    return routing.in_use if isinstance(routing, Reshapable) else routing


def structure_of(routing: Routing) -> Structured | None:
    """The router in use, if its links follow from a structure."""
    used = in_use(routing)
    return used if isinstance(used, Structured) else None


def paths_of(routing: Routing) -> Multipath | None:
    """The router, if there are several paths between brokers, in one epoch at least."""
    if isinstance(routing, Reshapable):
        return routing.paths
    return routing if isinstance(routing, Multipath) else None


def kind_of(routing: Routing, epochs: Reshapable | None, neighbour: Neighbour) -> LinkKind | None:
    """The kind of a link of any epoch; None if it is not up."""
    return routing.neighbours.get(neighbour) if epochs is None else epochs.kind_of(neighbour)
