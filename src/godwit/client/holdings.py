"""What a client has advertised and subscribed to, by the application's ids.  Pure.

A subscription to a channel is stored at one broker only.  Wherever it is asked for again, it
continues from its position.

Ids carry the client's incarnation, so those of an earlier one, which may still be in the tables of
brokers, are different.

H1  An advertisement keeps its id; its edition rises each time it is asked for again.
H2  A subscription that is asked for again gets a new id, because the broker that had it before may
    still store it.  The application keeps using the first id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from msgspec.structs import replace

from godwit.content.channel_messages import (
    ChannelResults,
    ChannelSubscription,
    ChannelSubscriptionId,
    ChannelUnsubscription,
    Position,
    Row,
)
from godwit.content.filters import Filter
from godwit.content.messages import (
    INCARNATION_END,
    Advertisement,
    AdvertisementId,
    Subscription,
    SubscriptionId,
    Unadvertisement,
    Unsubscription,
)
from godwit.content.values import TEXT_LENGTH_MAX, Value
from godwit.errors import ContentError, UsageError
from godwit.migration.move import Move


@dataclass(slots=True, eq=False)
class HeldAdvertisement:
    id: AdvertisementId
    filter: Filter
    edition: int = 0
    in_effect: bool = False
    is_asked: bool = False
    """False while it waits for the end of a move."""

    def request(self) -> Advertisement:
        return Advertisement(id=self.id, filter=self.filter, edition=self.edition)

    def withdrawal(self) -> Unadvertisement:
        return Unadvertisement(id=self.id)


@dataclass(slots=True, eq=False)
class HeldSubscription:
    id: SubscriptionId
    """The id at the broker (H2)."""

    filter: Filter
    local_only: bool = False
    is_asked: bool = False
    """False while it waits for the end of a move."""

    def request(self) -> Subscription:
        return Subscription(id=self.id, filter=self.filter, local_only=self.local_only)

    def withdrawal(self) -> Unsubscription:
        return Unsubscription(id=self.id)


@dataclass(slots=True, eq=False)
class HeldChannelSubscription:
    id: ChannelSubscriptionId
    channel: str
    arguments: dict[str, Value]
    position: Position | None = None
    """Where the next results begin; None until the broker has announced the start."""

    is_asked: bool = False
    """False while it waits for the end of a move."""

    def request(self) -> ChannelSubscription:
        return ChannelSubscription(
            id=self.id, channel=self.channel, arguments=self.arguments, start=self.position
        )

    def withdrawal(self) -> ChannelUnsubscription:
        return ChannelUnsubscription(id=self.id)

    def take(self, results: ChannelResults) -> list[Row]:
        """Advance the position; return the rows that are new."""
        execution, first = results.execution, results.first
        if self.position is not None and self.position > (execution, first):
            seen_execution, seen = self.position
            if seen_execution > execution or seen >= first + len(results.rows):
                return []
            results = replace(results, first=seen, rows=results.rows[seen - first :])
        self.position = (execution, results.first + len(results.rows))
        return results.rows


Held: TypeAlias = HeldAdvertisement | HeldSubscription | HeldChannelSubscription
Withdrawal: TypeAlias = Unadvertisement | Unsubscription | ChannelUnsubscription


class Holdings:
    def __init__(self, client: str, incarnation: str = "") -> None:
        """`incarnation` is empty if there will be no other client of this name."""
        self.advertisements: dict[AdvertisementId, HeldAdvertisement] = {}
        self.subscriptions: dict[SubscriptionId, HeldSubscription] = {}
        self.channels: dict[ChannelSubscriptionId, HeldChannelSubscription] = {}
        self._client = client
        self._prefix = f"{client}/{incarnation}{INCARNATION_END}" if incarnation else f"{client}/"
        self._serial = 0
        self._known_as: dict[SubscriptionId, SubscriptionId] = {}
        self._last_used: AdvertisementId | None = None

    @property
    def all(self) -> list[Held]:
        return [
            *self.advertisements.values(), *self.subscriptions.values(), *self.channels.values()
        ]  # fmt: skip

    def advertise(self, filter: Filter) -> HeldAdvertisement:
        id = AdvertisementId(self._new_id("a"))
        return self.advertisements.setdefault(id, HeldAdvertisement(id, filter))

    def subscribe(self, filter: Filter, *, local_only: bool = False) -> HeldSubscription:
        id = self._new_subscription_id()
        self._known_as[id] = id
        return self.subscriptions.setdefault(id, HeldSubscription(id, filter, local_only))

    def adopt(self, id: SubscriptionId, filter: Filter) -> None:
        """Add a subscription that the broker stores already."""
        self._known_as[id] = id
        self.subscriptions[id] = HeldSubscription(id, filter, is_asked=True)

    def subscribe_channel(
        self, channel: str, arguments: dict[str, Value]
    ) -> HeldChannelSubscription:
        id = ChannelSubscriptionId(self._new_id("c"))
        return self.channels.setdefault(id, HeldChannelSubscription(id, channel, arguments))

    def unsubscribe(self, known: SubscriptionId) -> HeldSubscription | None:
        subscribed = self.subscriptions.pop(known, None)
        if subscribed is not None:
            del self._known_as[subscribed.id]
        return subscribed

    def known_as(self, id: SubscriptionId) -> SubscriptionId:
        """The application's id of a subscription with this id at the broker."""
        return self._known_as.get(id, id)

    def renew(self, *, new_ids: bool) -> None:
        """Prepare to ask for everything again (H1), with new ids of subscriptions or without (H2).

        Without is safe at a broker that was asked for nothing yet.
        """
        for advertised in self.advertisements.values():
            advertised.edition += 1
        if new_ids:
            for known in self.subscriptions:
                self._rename(known)

    def _rename(self, known: SubscriptionId, id: SubscriptionId | None = None) -> None:
        """The id at the broker becomes `id`, or a new one (H2)."""
        subscribed = self.subscriptions[known]
        del self._known_as[subscribed.id]
        subscribed.id = id or self._new_subscription_id()
        self._known_as[subscribed.id] = known

    def _new_subscription_id(self) -> SubscriptionId:
        return SubscriptionId(self._new_id("s"))

    def _new_id(self, letter: str) -> str:
        self._serial += 1
        return f"{self._prefix}{letter}{self._serial}"

    # -- publishing ----------------------------------------------------------------------------

    def permission(self, content: dict[str, Value]) -> HeldAdvertisement:
        """The advertisement to publish this under: the one used last, or the first that permits it.

        Raises ContentError, with the reason, if there is none.
        """
        if self._last_used is not None:
            advertised = self.advertisements.get(self._last_used)
            if advertised is not None and advertised.filter.permits_checked(content):
                return advertised
        for advertised in self.advertisements.values():
            if advertised.filter.permits_checked(content):
                self._last_used = advertised.id
                return advertised
        raise ContentError(self._why_not_permitted(content))

    def _why_not_permitted(self, content: dict[str, Value]) -> str:
        if not self.advertisements:
            return "nothing is advertised; call advertise() before publish()"
        if len(self.advertisements) == 1:
            (advertised,) = self.advertisements.values()
            return advertised.filter.why_not_permitted(content)
        latest_first = reversed(self.advertisements.values())
        obstacles = {held.id: (held, held.filter.obstacles(content)) for held in latest_first}
        nearest, in_the_way = min(obstacles.values(), key=lambda each: len(each[1]))
        return (
            f"none of {len(self.advertisements)} advertisements permits this record;"
            f" the nearest, {nearest.id}: {nearest.filter}, {'; it '.join(in_the_way)}"
        )

    # -- moving --------------------------------------------------------------------------------

    def plan_move(self, number: int, source: str) -> Move:
        """What to ask another broker for: everything that is held."""
        return Move(
            number,
            client=self._client,
            source=source,
            subscriptions={
                held.id: replace(held.request(), id=self._new_subscription_id())
                for held in self.subscriptions.values()
            },
            advertisements={
                id: replace(held.request(), edition=held.edition + 1)
                for id, held in self.advertisements.items()
            },
            unconfirmed={id for id, held in self.advertisements.items() if not held.in_effect},
        )

    def advertise_again(self, advertisement: Advertisement) -> None:
        """The old broker is asked for a later edition: the client returns to it."""
        held = self.advertisements.get(advertisement.id)
        if held is not None:
            held.edition, held.in_effect = advertisement.edition, False

    def arrive(self, move: Move) -> None:
        """Take over the editions and ids of the new broker."""
        for advertisement in move.advertisements.values():
            held = self.advertisements.get(advertisement.id)
            if held is not None:
                held.edition = advertisement.edition
                held.in_effect = advertisement.id not in move.unconfirmed
        for old, subscription in move.subscriptions.items():
            if old in self._known_as:
                self._rename(self._known_as[old], subscription.id)
        for channel in self.channels.values():
            channel.is_asked = False


def check_askable(filter: Filter) -> None:
    """Raise UsageError for a filter that a broker would refuse."""
    if not filter.is_satisfiable:
        raise UsageError(f"nothing can match {filter}")
    length = len(filter.padres())
    if length > TEXT_LENGTH_MAX:
        raise UsageError(
            f"the filter has {length} characters as text; at most {TEXT_LENGTH_MAX} are allowed"
        )
