"""What a broker asks of an overlay.  Implementations sit in overlay/, one file each.

A strategy owns the routing tables of one broker.  It is told every message that changes them and
answers with what to send on and what to confirm.  For a publication it only says where copies go,
because what becomes of a copy (delivery, link, module) is the same in every overlay.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol, TypeAlias

import msgspec

from godwit.broker.effects import Send
from godwit.broker.stimuli import Client, Hop, Module, Neighbour
from godwit.content.messages import (
    AdvertisementId,
    AdvertisementInEffect,
    Publication,
    RoutingMessage,
    SubscriptionInEffect,
    Swept,
)


class Confirm(msgspec.Struct, frozen=True):
    """Tell the client or module that asked: it is in effect now, or its way is swept."""

    to: Client | Module
    notice: AdvertisementInEffect | SubscriptionInEffect | Swept


class MovedAway(msgspec.Struct, frozen=True):
    """The publisher of an advertisement is at another broker now."""

    publisher: Client | Module
    id: AdvertisementId


class MovedHere(msgspec.Struct, frozen=True):
    """A publisher that was at another broker begins to publish here."""

    publisher: Client | Module


#: What a router may answer.
Answer: TypeAlias = Send | Confirm | MovedAway | MovedHere


class Tables(msgspec.Struct, frozen=True):
    """What a router knows, by id, for people and for checks: where each thing came from."""

    advertisements: dict[str, Hop]
    subscriptions: dict[str, Hop]
    told: dict[str, list[str]]
    """For each neighbour, the subscriptions that were sent to it."""


class Routing(Protocol):
    @property
    def subscription_count(self) -> int:
        """Subscriptions in the tables; the matching delay grows with it."""
        ...

    @property
    def advertisement_count(self) -> int:
        """Advertisements in the tables."""
        ...

    def handle(self, message: RoutingMessage, last_hop: Hop) -> Sequence[Answer]:
        """Take in one message about advertisements or subscriptions."""
        ...

    def link_up(self, neighbour: Neighbour) -> Sequence[Answer]:
        """A link to a neighbour that knows nothing of us is there."""
        ...

    def link_down(self, neighbour: Neighbour) -> Sequence[Answer]:
        """A link is gone for good, and all that came over it is to be withdrawn."""
        ...

    def link_restarted(self, neighbour: Neighbour) -> Sequence[Answer]:
        """A neighbour has failed and is back: what it had told us holds until it has told all."""
        ...

    def recovering(self) -> Sequence[Answer]:
        """The broker has failed and is back; its clients and neighbours are still to come."""
        ...

    def clients_returned(self) -> Sequence[Answer]:
        """After a failure of this broker, its clients had time to come back."""
        ...

    def recovered(self) -> Sequence[Answer]:
        """After a failure of this broker, its neighbours had time to tell what they know."""
        ...

    @property
    def is_complete(self) -> bool:
        """Has every neighbour told all it knows?"""
        ...

    def destinations(self, publication: Publication, last_hop: Hop, hops: int) -> Collection[Hop]:
        """Where copies of `publication` go from here: each hop once, never `last_hop`."""
        ...

    def tables(self) -> Tables:
        """A copy of the tables as they are now."""
        ...

    def check(self) -> None:
        """Assert the numbered invariants of the strategy's tables."""
        ...
