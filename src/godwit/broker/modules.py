"""Policy modules: what they see of their broker, and what they may ask for.

A module is a client inside the broker.  It advertises, subscribes and publishes by submitting
messages, which enter the input queue of the broker like those of any client; control publications
reach it because it subscribed to their class.  It may also watch every publication that the broker
handles, mark those that local clients publish, send letters to modules of the same name in
neighbouring brokers, read the broker's meters, set timers, and ask clients to move.  It cannot
change the routing tables.

To add a policy, derive a class from `PolicyModule`, override the methods it needs, and pass an
instance to `Broker(modules=...)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from godwit.broker.delays import Delays
from godwit.broker.effects import Decision
from godwit.broker.meters import Meters
from godwit.broker.routing import Multipath, Steerable, SteeringStatus, SteerRequest, in_use
from godwit.broker.sessions import ClientSubscription
from godwit.broker.stimuli import Hop, LinkKind, Neighbour
from godwit.content.filters import Filter
from godwit.content.messages import (
    MOVE_S,
    Advertisement,
    AdvertisementInEffect,
    Message,
    Publication,
    SubscriptionId,
    SubscriptionInEffect,
)
from godwit.errors import UsageError

if TYPE_CHECKING:
    from godwit.broker.core import Broker


@dataclass(frozen=True, slots=True)
class Timer:
    """Call `on_timer(name)` at `at_s`."""

    name: str
    at_s: float


@dataclass(frozen=True, slots=True)
class ToNeighbour:
    """Send `body` to the module of the same name there; FIFO with publications on that link.

    It is lost if a broker or link fails: a module that waits for an answer needs a deadline.
    """

    neighbour: Neighbour
    body: bytes


@dataclass(frozen=True, slots=True)
class AskToMove:
    """Ask a client of this broker to move to another.

    There is no answer: `on_departed` follows if the client leaves, and nothing if it stays.
    """

    client: str
    target: str
    address: str
    within_s: float = MOVE_S
    """A client that has not arrived after this time stays."""

    session: str = ""
    """Travels with the client: `on_arrived` at the target has it."""


@dataclass(frozen=True, slots=True)
class AskForPings:
    """Let a client of this broker measure round-trip times; `on_pinged` has the answer."""

    client: str
    brokers: tuple[tuple[str, str], ...]
    """Names and addresses."""


@dataclass(frozen=True, slots=True)
class WantSoftLinks:
    """The soft links that the broker should have from now on, and no others (overlay/mesh/)."""

    brokers: tuple[str, ...]


#: Messages to submit, requests to the driver, and decisions to record.
DriverRequest: TypeAlias = Message | Timer | ToNeighbour | AskToMove | AskForPings | Decision
#: What a module may return.
Request: TypeAlias = DriverRequest | WantSoftLinks | SteerRequest


class BrokerView:
    """What a module may read of its broker.  Everything is current, nothing can be changed."""

    __slots__ = ("_broker", "owner")

    def __init__(self, broker: Broker, owner: str) -> None:
        self._broker = broker
        self.owner = owner
        """The module's name as a client: its publisher name, and the first part of its ids."""

    @property
    def broker(self) -> str:
        """The name of the broker."""
        return self._broker.name

    @property
    def address(self) -> str:
        """Where clients connect to the broker; empty in a simulation."""
        return self._broker.address

    @property
    def meters(self) -> Meters:
        return self._broker.meters

    @property
    def delays(self) -> Delays:
        return self._broker.delays

    @property
    def output_bandwidth_bytes_s(self) -> float:
        return self._broker.meters.output_bandwidth_bytes_s

    @property
    def memory_utilisation(self) -> float:
        """Used memory over available memory; 0 where it is not limited."""
        return self._broker.memory_utilisation()

    @property
    def multipath(self) -> Multipath | None:
        """The router, if it has several paths: for the policy that manages soft links."""
        used = in_use(self._broker.routing)
        return used if isinstance(used, Multipath) else None

    @property
    def neighbours(self) -> Mapping[Neighbour, LinkKind]:
        """The links of the broker, with their kinds."""
        return self._broker.routing.neighbours

    @property
    def subscription_count(self) -> int:
        """Entries of the matching engine: the subscriptions of clients, modules and neighbours."""
        return self._broker.routing.subscription_count

    @property
    def has_all_links(self) -> bool:
        """Whether every configured link is up and has sent its tables, or was given up."""
        return self._broker.routing.is_complete

    @property
    def missing_brokers(self) -> frozenset[str]:
        """Brokers whose links were given up, here or elsewhere in the network."""
        return frozenset(key.broker for key in self._broker.parts.missing)

    @property
    def steering(self) -> SteeringStatus | None:
        """What other brokers do for this one; None if the router cannot be steered."""
        routing = self._broker.routing
        return routing.steering if isinstance(routing, Steerable) else None

    def subscriptions(self) -> Iterator[ClientSubscription]:
        """The subscriptions of local clients, with their filters."""
        return self._broker.sessions.subscriptions()

    def subscriptions_of(self, client: str) -> Mapping[SubscriptionId, Filter]:
        """The subscriptions of one local client; empty if it has none."""
        return self._broker.sessions.subscriptions_of(client)

    def publishers(self) -> Iterator[str]:
        """The local clients that have advertised something."""
        return self._broker.sessions.publishers()


class PolicyModule:
    name: str
    """Unique within the broker."""

    is_watching: bool = True
    """Whether `on_publication` is called.  A module that is not interested in publications for a
    while sets it to False, and costs nothing for each of them."""

    def start(self, view: BrokerView, now_s: float) -> Iterable[Request]:
        """The broker has started."""
        return ()

    def on_in_effect(
        self, notice: AdvertisementInEffect | SubscriptionInEffect, now_s: float
    ) -> Iterable[Request]:
        """An advertisement or subscription of this module is in effect."""
        return ()

    def on_delivery(self, publication: Publication, now_s: float) -> Iterable[Request]:
        """A publication this module subscribed to."""
        return ()

    def tag(self, publication: Publication, now_s: float) -> int:
        """A local client publishes: return the mark of this module for it, 0 for none.

        Called once for each publication that is accepted and is not control, just before
        `on_publication`.  `Publication.mark` reads the mark at any broker.
        """
        return 0

    @property
    def tags(self) -> bool:
        return type(self).tag is not PolicyModule.tag

    def on_publication(
        self, publication: Publication, last_hop: Hop, destinations: Sequence[Hop], now_s: float
    ) -> Iterable[Request]:
        """The broker handled a publication and sent copies to `destinations`."""
        return ()

    def on_subscription(
        self, client: str, id: SubscriptionId, filter: Filter | None, now_s: float
    ) -> Iterable[Request]:
        """A local client has subscribed, or unsubscribed if there is no filter.

        When a client leaves with its subscriptions, `on_departed` follows instead.
        """
        return ()

    def refuses(self, advertisement: Advertisement, client: str) -> str | None:
        """Why a local client must not advertise this here; None if it may."""
        return None

    def on_letter(self, body: bytes, neighbour: Neighbour, now_s: float) -> Iterable[Request]:
        """A letter from the module of the same name in a neighbour."""
        return ()

    def on_timer(self, name: str, now_s: float) -> Iterable[Request]:
        return ()

    def on_publisher_arrived(self, client: str, now_s: float) -> Iterable[Request]:
        """A publisher that was at another broker begins to publish here.

        Its move may still be going on; `on_arrived` follows when it is complete.
        """
        return ()

    def on_arrived(self, client: str, session: str, now_s: float) -> Iterable[Request]:
        """A client, publisher or subscriber, has completed its move to this broker.

        `session` is that of the `AskToMove` that started the move, empty if there was none.
        """
        return ()

    def on_departed(self, client: str, now_s: float) -> Iterable[Request]:
        """A client has moved away or left; of a publisher, its last advertisement is gone."""
        return ()

    def on_pinged(
        self, client: str, round_trips_s: dict[str, float], now_s: float
    ) -> Iterable[Request]:
        """A client measured round-trip times; brokers that did not answer are missing."""
        return ()

    def on_command(self, command: str, now_s: float) -> Iterable[Request]:
        """An operator tells this module what to do; UsageError if it does not know the command."""
        raise UsageError(f"module {self.name} knows no command {command!r}")

    def account(self, now_s: float) -> Mapping[str, object]:
        """What an operator may want to know, as values that JSON has."""
        return {}
