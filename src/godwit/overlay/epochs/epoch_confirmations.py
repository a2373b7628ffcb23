"""Requests of clients while there are two epochs: in effect when both say so.

What was in effect before the next epoch was begun stays in effect, and is *owed* until it is in
effect there, too: the next epoch can be used when nothing is owed.  A request that comes later is
confirmed to its client when both epochs have confirmed it, or the one that remains.
"""

from __future__ import annotations

from typing import TypeAlias

from godwit.broker.routing import Confirm, Holding
from godwit.content.messages import (
    Advertisement,
    AdvertisementInEffect,
    Present,
    RoutingMessage,
    Subscription,
    SubscriptionInEffect,
    Unadvertisement,
    Unsubscription,
)

#: The kind of a request, and its id.
Key: TypeAlias = tuple[str, str]


class Confirmations:
    def __init__(self) -> None:
        self._told: dict[Key, Confirm] = {}
        """What clients know to be in effect."""
        self._owed: set[Key] = set()
        self._half: dict[bool, dict[Key, Confirm]] = {False: {}, True: {}}
        """What only the present epoch (False), or only the next one (True), has confirmed."""

    @property
    def owes(self) -> bool:
        """Whether something is in effect that is not yet in effect in the next epoch."""
        return bool(self._owed)

    def enter(self, holding: Holding) -> None:
        """A client holds this when the next epoch is begun."""
        if holding.notice is not None:
            key = _key(holding.notice)
            self._told[key] = Confirm(holding.hop, holding.notice)
            self._owed.add(key)

    def request(self, message: RoutingMessage) -> None:
        """A client asks for something, or withdraws it: earlier confirmations do not count."""
        if isinstance(message, Advertisement | Subscription | Unadvertisement | Unsubscription):
            self.withdraw(_key(message))

    def withdraw(self, key: Key) -> None:
        self._owed.discard(key)
        for confirmed in (self._told, *self._half.values()):
            confirmed.pop(key, None)

    def confirm(self, confirm: Confirm, *, by_next: bool) -> bool:
        """An epoch confirms a request; return whether its client is to be told."""
        if not isinstance(confirm.notice, AdvertisementInEffect | SubscriptionInEffect):
            return True
        key = _key(confirm.notice)
        if self._told.get(key) == confirm:
            if by_next:
                self._owed.discard(key)
            return False
        if self._half[not by_next].get(key) == confirm:
            del self._half[not by_next][key]
            self._told[key] = confirm
            return True
        self._half[by_next][key] = confirm
        return False

    def end(self, *, next_remains: bool) -> list[Confirm]:
        """Only one epoch remains: what it has confirmed is in effect."""
        return list(self._half[next_remains].values())


def advertisement_key(id: str) -> Key:
    return "advertisement", id


def _key(
    message: Advertisement
    | Subscription
    | Unadvertisement
    | Unsubscription
    | AdvertisementInEffect
    | SubscriptionInEffect
    | Present,
) -> Key:
    if isinstance(message, Advertisement | Unadvertisement | AdvertisementInEffect):
        return advertisement_key(message.id)
    assert not isinstance(message, Present)
    return "subscription", message.id
