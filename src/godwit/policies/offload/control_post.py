"""What a module of the load balancer advertises, subscribes to and publishes.

All coordination is publish/subscribe (thesis 4.1.2): control publications, through the ordinary
broker.  A word names an advertisement or subscription within the module: `pie`, `input`.

Ids have an incarnation, so that those of a broker that has restarted are new: others may still hold
the earlier ones, and sequence numbers start again.

O1  Nothing is published under an advertisement that is not in effect: the broker would refuse it.
    It is dropped, as if it had been lost; whoever waits has a deadline.
O2  Sequence numbers rise in the order in which publications are submitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from godwit.broker.modules import Request
from godwit.content.filters import Filter
from godwit.content.messages import (
    INCARNATION_END,
    Advertisement,
    AdvertisementId,
    AdvertisementInEffect,
    Publication,
    Subscription,
    SubscriptionId,
    SubscriptionInEffect,
    Unadvertisement,
    Unsubscription,
)
from godwit.content.values import CheckedValue


class ControlPost:
    def __init__(self, owner: str, incarnation: str) -> None:
        self._owner = owner
        self._incarnation = incarnation
        self._advertisements: dict[str, AdvertisementId] = {}
        self._subscriptions: dict[str, SubscriptionId] = {}
        self._in_effect: set[AdvertisementId] = set()
        self._serial = 0
        self._sequence = 0

    def _id(self, word: str) -> str:
        self._serial += 1
        return f"{self._owner}/{self._incarnation}{INCARNATION_END}{word}-{self._serial}"

    def advertise(self, word: str, filter: Filter) -> list[Request]:
        """Advertise under a word; what was advertised under it before is withdrawn."""
        withdrawn = self.unadvertise(word)
        id = self._advertisements[word] = AdvertisementId(self._id(word))
        return [*withdrawn, Advertisement(id=id, filter=filter)]

    def unadvertise(self, word: str) -> list[Request]:
        id = self._advertisements.pop(word, None)
        if id is None:
            return []
        self._in_effect.discard(id)
        return [Unadvertisement(id=id)]

    def subscribe(self, word: str, filter: Filter) -> list[Request]:
        """Subscribe under a word, then withdraw the earlier subscription: no gap between them."""
        id = SubscriptionId(self._id(word))
        withdrawn = self.unsubscribe(word)
        self._subscriptions[word] = id
        return [Subscription(id=id, filter=filter), *withdrawn]

    def unsubscribe(self, word: str) -> list[Request]:
        id = self._subscriptions.pop(word, None)
        return [] if id is None else [Unsubscription(id=id)]

    def subscribed(self) -> list[str]:
        """The words of all subscriptions."""
        return list(self._subscriptions)

    def on_in_effect(self, notice: AdvertisementInEffect | SubscriptionInEffect) -> str | None:
        """The word of an advertisement that is in effect now; None for all other notices."""
        for word, id in self._advertisements.items():
            if isinstance(notice, AdvertisementInEffect) and notice.id == id:
                self._in_effect.add(id)
                return word
        return None

    def can_publish(self, word: str) -> bool:
        return self._advertisements.get(word) in self._in_effect

    def publish(
        self,
        word: str,
        content: Mapping[str, CheckedValue],
        payload: bytes = b"",
        ttl_hops: int | None = None,
    ) -> list[Request]:
        """Publish under the advertisement of a word, if that is in effect (O1)."""
        if not self.can_publish(word):
            return []
        return [
            Publication(
                publisher=self._owner,
                sequence=0,
                advertisement=self._advertisements[word],
                content=dict(content),
                payload=payload,
                ttl_hops=ttl_hops,
            )
        ]

    def numbered(self, requests: Iterable[Request]) -> list[Request]:
        """The requests as they are submitted: publications get their sequence numbers (O2)."""
        numbered: list[Request] = []
        for request in requests:
            if isinstance(request, Publication):
                request = replace(request, sequence=self._sequence)  # noqa: PLW2901
                self._sequence += 1
            numbered.append(request)
        return numbered
