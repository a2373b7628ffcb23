"""What a client has advertised and subscribed to, by the ids that the application knows.

A subscription to a channel is known to one broker only, and goes on from its position wherever it
is asked for.

H1  An advertisement has one id, and an edition that rises each time it is asked for again.
H2  A subscription that is asked for again gets another id: the broker that had it before may have
    it still.  The application knows the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from msgspec.structs import replace

from godwit.content.channels import (
    ChannelResults,
    ChannelSubscription,
    ChannelSubscriptionId,
    ChannelUnsubscription,
    Position,
    Row,
)
from godwit.content.filters import Filter
from godwit.content.messages import (
    Advertisement,
    AdvertisementId,
    Subscription,
    SubscriptionId,
    Unadvertisement,
    Unsubscription,
)
from godwit.content.values import TEXT_LENGTH_MAX, Value
from godwit.errors import ContentError, UsageError
from godwit.migration.moving import Move


@dataclass(slots=True, eq=False)
class Advertised:
    id: AdvertisementId
    filter: Filter
    edition: int = 0
    in_effect: bool = False
    is_asked: bool = False
    """Or it waits for the end of a move."""

    def request(self) -> Advertisement:
        return Advertisement(id=self.id, filter=self.filter, edition=self.edition)

    def withdrawal(self) -> Unadvertisement:
        return Unadvertisement(id=self.id)


@dataclass(slots=True, eq=False)
class Subscribed:
    id: SubscriptionId
    """As the broker knows it (H2)."""

    filter: Filter
    is_asked: bool = False
    """Or it waits for the end of a move."""

    def request(self) -> Subscription:
        return Subscription(id=self.id, filter=self.filter)

    def withdrawal(self) -> Unsubscription:
        return Unsubscription(id=self.id)


@dataclass(slots=True, eq=False)
class ChannelSubscribed:
    id: ChannelSubscriptionId
    channel: str
    arguments: dict[str, Value]
    position: Position | None = None
    """None until the broker has said where it begins."""

    is_asked: bool = False
    """Or it waits for the end of a move."""

    def request(self) -> ChannelSubscription:
        return ChannelSubscription(
            id=self.id, channel=self.channel, arguments=self.arguments, start=self.position
        )

    def withdrawal(self) -> ChannelUnsubscription:
        return ChannelUnsubscription(id=self.id)

    def take(self, results: ChannelResults) -> list[Row]:
        """Those rows that have not come before."""
        execution, first = results.execution, results.first
        if self.position is not None and self.position > (execution, first):
            seen_execution, seen = self.position
            if seen_execution > execution or seen >= first + len(results.rows):
                return []
            results = replace(results, first=seen, rows=results.rows[seen - first :])
        self.position = (execution, results.first + len(results.rows))
        return results.rows


Held: TypeAlias = Advertised | Subscribed | ChannelSubscribed
Withdrawal: TypeAlias = Unadvertisement | Unsubscription | ChannelUnsubscription


class Holdings:
    def __init__(self, client: str, first_serial: int) -> None:
        self.advertisements: dict[AdvertisementId, Advertised] = {}
        self.subscriptions: dict[SubscriptionId, Subscribed] = {}
        self.channels: dict[ChannelSubscriptionId, ChannelSubscribed] = {}
        self._client = client
        self._serial = first_serial
        self._known_as: dict[SubscriptionId, SubscriptionId] = {}
        self._last_used: AdvertisementId | None = None

    @property
    def all(self) -> list[Held]:
        return [
            *self.advertisements.values(), *self.subscriptions.values(), *self.channels.values()
        ]  # fmt: skip

    def advertise(self, filter: Filter) -> Advertised:
        check_askable(filter)
        id = AdvertisementId(self._new_id("a"))
        return self.advertisements.setdefault(id, Advertised(id, filter))

    def subscribe(self, filter: Filter) -> Subscribed:
        check_askable(filter)
        id = self._new_subscription_id()
        self._known_as[id] = id
        return self.subscriptions.setdefault(id, Subscribed(id, filter))

    def adopt(self, id: SubscriptionId, filter: Filter) -> None:
        """A subscription that a broker knows already."""
        self._known_as[id] = id
        self.subscriptions[id] = Subscribed(id, filter, is_asked=True)

    def subscribe_channel(self, channel: str, arguments: dict[str, Value]) -> ChannelSubscribed:
        id = ChannelSubscriptionId(self._new_id("c"))
        return self.channels.setdefault(id, ChannelSubscribed(id, channel, arguments))

    def unsubscribe(self, known: SubscriptionId) -> Subscribed | None:
        subscribed = self.subscriptions.pop(known, None)
        if subscribed is not None:
            del self._known_as[subscribed.id]
        return subscribed

    def known(self, id: SubscriptionId) -> SubscriptionId:
        """What the application calls the subscription with this id, if it has it still."""
        return self._known_as.get(id, id)

    def rename(self, known: SubscriptionId, id: SubscriptionId | None = None) -> None:
        """A broker knows a subscription by another id from now on; by any new one (H2)."""
        subscribed = self.subscriptions[known]
        del self._known_as[subscribed.id]
        subscribed.id = id or self._new_subscription_id()
        self._known_as[subscribed.id] = known

    def _new_subscription_id(self) -> SubscriptionId:
        return SubscriptionId(self._new_id("s"))

    def _new_id(self, letter: str) -> str:
        self._serial += 1
        return f"{self._client}/{letter}{self._serial}"

    # -- publishing ----------------------------------------------------------------------------

    def permission(self, content: dict[str, Value]) -> Advertised:
        """An advertisement that permits this content: the one used last, or the first that does."""
        if self._last_used is not None:
            advertised = self.advertisements.get(self._last_used)
            if advertised is not None and advertised.filter.permits(content):
                return advertised
        for advertised in self.advertisements.values():
            if advertised.filter.permits(content):
                self._last_used = advertised.id
                return advertised
        raise ContentError(self._why_not_permitted(content))

    def _why_not_permitted(self, content: dict[str, Value]) -> str:
        if not self.advertisements:
            return "nothing is advertised; call advertise() before publish()"
        if len(self.advertisements) > 1:
            return f"none of {len(self.advertisements)} advertisements permits this record"
        (advertised,) = self.advertisements.values()
        return advertised.filter.why_not_permitted(content)

    # -- moving --------------------------------------------------------------------------------

    def plan_move(self, number: int, source: str) -> Move:
        """Everything again, at another broker."""
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

    def arrive(self, move: Move) -> None:
        """Everything is as the new broker knows it."""
        for advertisement in move.advertisements.values():
            held = self.advertisements.get(advertisement.id)
            if held is not None:
                held.edition = advertisement.edition
                held.in_effect = advertisement.id not in move.unconfirmed
        for old, subscription in move.subscriptions.items():
            if old in self._known_as:
                self.rename(self._known_as[old], subscription.id)
        for channel in self.channels.values():
            channel.is_asked = False


def check_askable(filter: Filter) -> None:
    """A broker would refuse it, or could not even read it."""
    if not filter.is_satisfiable:
        raise UsageError(f"nothing can match {filter}")
    if len(filter.padres()) > TEXT_LENGTH_MAX:
        raise UsageError(f"a filter as text has at most {TEXT_LENGTH_MAX} characters")
