"""Policy modules: what a broker hosts, what they see, and what they may ask for.

A module is a client that lives inside the broker.  It advertises, subscribes and publishes by
submitting messages, which enter the broker's input queue like everyone else's; control
publications reach it because it subscribed to their class.  Beyond that it may watch every
publication the broker handles, mark those that clients publish here, write to the modules of the
same name in neighbouring brokers, read the broker's meters, set timers, and ask clients to move.
It cannot touch the routing tables: policies propose, the broker disposes.

To add a policy, derive a class from `PolicyModule`, override what you care about, and pass an
instance to `Broker(modules=...)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from godwit.broker.delays import Delays
from godwit.broker.effects import Decision
from godwit.broker.meters import Meters
from godwit.broker.stimuli import Hop, Neighbour
from godwit.content.messages import (
    AdvertisementInEffect,
    Message,
    Publication,
    SubscriptionInEffect,
)


@dataclass(frozen=True, slots=True)
class Timer:
    """Call `on_timer(name)` at `at_s`."""

    name: str
    at_s: float


@dataclass(frozen=True, slots=True)
class ToNeighbour:
    """Hand `body` to the module of the same name there; FIFO with publications on that link.

    It may get lost, if a broker or link fails: do not wait for an answer for ever.
    """

    neighbour: Neighbour
    body: bytes


@dataclass(frozen=True, slots=True)
class AskToMove:
    """Ask a client of this broker to move to another.

    Nobody answers: `on_departed` comes when it has left, or never, if it stays.
    """

    client: str
    target: str
    address: str


@dataclass(frozen=True, slots=True)
class AskForPings:
    """Let a client of this broker measure how far some brokers are; `on_pinged` has the answer."""

    client: str
    brokers: tuple[tuple[str, str], ...]
    """Names and addresses."""


#: What a module may answer with: messages to submit, and the above.  A `Decision` is written down.
Request: TypeAlias = Message | Timer | ToNeighbour | AskToMove | AskForPings | Decision


@dataclass(frozen=True, slots=True)
class BrokerView:
    """What a module may read of its broker."""

    broker: str
    owner: str
    """The module's name as a client: its publisher name, and the first part of its ids."""

    meters: Meters
    delays: Delays
    address: str = ""
    """Where clients can reach the broker; nothing in a simulation."""


class PolicyModule:
    name: str
    """Unique within the broker."""

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
        """A client of this broker publishes: what to put into `trace`, 0 for nothing.

        It is asked of publications that are not control, once they are accepted, just before
        `on_publication`.  Of the modules of a broker one may override this.
        """
        return 0

    @property
    def tags(self) -> bool:
        return type(self).tag is not PolicyModule.tag

    def on_publication(
        self, publication: Publication, last_hop: Hop, destinations: Sequence[Hop], now_s: float
    ) -> Iterable[Request]:
        """The broker handled a publication; these are the hops that got a copy."""
        return ()

    def on_letter(self, body: bytes, neighbour: Neighbour, now_s: float) -> Iterable[Request]:
        """The module of the same name in a neighbour wrote."""
        return ()

    def on_timer(self, name: str, now_s: float) -> Iterable[Request]:
        return ()

    def on_arrived(self, client: str, now_s: float) -> Iterable[Request]:
        """A publisher that was at another broker has moved here."""
        return ()

    def on_departed(self, client: str, now_s: float) -> Iterable[Request]:
        """A client publishes here no more: it has moved away, or left."""
        return ()

    def on_pinged(
        self, client: str, round_trips_s: dict[str, float], now_s: float
    ) -> Iterable[Request]:
        """A client has measured how far it is from brokers; those that did not answer miss."""
        return ()
