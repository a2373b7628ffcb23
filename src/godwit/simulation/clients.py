"""A simulated application: it advertises, publishes, subscribes, and keeps the client's rules.

The one rule that takes code: a publication waits at its client until its advertisement is in
effect, because a broker refuses it before.  Applications will not notice; `published` counts
from the moment it is handed over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import assert_never

from godwit.broker.stimuli import Client, Received
from godwit.content.filters import Filter
from godwit.content.messages import (
    Advertisement,
    AdvertisementId,
    AdvertisementInEffect,
    Message,
    Notice,
    Publication,
    Refusal,
    Subscription,
    SubscriptionId,
    SubscriptionInEffect,
    Unadvertisement,
    Unsubscription,
)
from godwit.content.values import Value
from godwit.simulation.agenda import Agenda
from godwit.simulation.node import Wire
from godwit.simulation.observers import Observer


class SimulatedClient:
    def __init__(
        self,
        name: str,
        *,
        agenda: Agenda,
        uplink: Wire,
        arrive: Callable[[Received, float], None],
        observer: Observer,
    ) -> None:
        self.name = name
        self.refusals: list[Refusal] = []
        self.unconfirmed: set[AdvertisementId | SubscriptionId] = set()
        """What it asked for and still wants, but was not told to be in effect."""
        self._agenda = agenda
        self._uplink = uplink
        self._arrive = arrive
        self._observer = observer
        self._hop = Client(name)
        self._serial = count(1)
        self._sequence = count()
        self._in_effect: set[AdvertisementId] = set()
        self._held: dict[AdvertisementId, deque[dict[str, Value]]] = {}

    # -- what the application does, now --------------------------------------------------------

    def advertise(self, filter: Filter) -> AdvertisementId:
        id = AdvertisementId(f"{self.name}/a{next(self._serial)}")
        self._held[id] = deque()
        self.unconfirmed.add(id)
        self._send(Advertisement(id=id, filter=filter))
        return id

    def unadvertise(self, id: AdvertisementId) -> None:
        """Withdraw; what still waits for the advertisement to be in effect is never published."""
        self._held.pop(id)
        self._in_effect.discard(id)
        self.unconfirmed.discard(id)
        self._send(Unadvertisement(id=id))

    def publish(self, advertisement: AdvertisementId, content: dict[str, Value]) -> None:
        if advertisement in self._in_effect:
            self._publish(advertisement, content)
        else:
            self._held[advertisement].append(content)

    def publish_all(
        self, advertisement: AdvertisementId, contents: Iterable[tuple[float, dict[str, Value]]]
    ) -> None:
        """Publish each content at its time, in order, one planned ahead of the other."""
        self._publish_next(advertisement, iter(contents), None)

    def subscribe(self, filter: Filter, *, local_only: bool = False) -> SubscriptionId:
        id = SubscriptionId(f"{self.name}/s{next(self._serial)}")
        subscription = Subscription(id=id, filter=filter, local_only=local_only)
        self.unconfirmed.add(id)
        self._observer.on_subscribing(self.name, subscription, self._agenda.now_s)
        self._send(subscription)
        return id

    def unsubscribe(self, id: SubscriptionId) -> None:
        self.unconfirmed.discard(id)
        self._observer.on_unsubscribing(self.name, id, self._agenda.now_s)
        self._send(Unsubscription(id=id))

    # -- what comes back -----------------------------------------------------------------------

    def receive(self, notice: Notice) -> None:
        """The broker answers.  (Publications go to the observers, many clients at a time.)"""
        match notice:
            case SubscriptionInEffect(id=id):
                self.unconfirmed.discard(id)
                self._observer.on_in_effect(self.name, id, self._agenda.now_s)
            case AdvertisementInEffect(id=id):
                self._on_advertisement_in_effect(id)
            case Refusal():
                self.refusals.append(notice)
            case _:
                assert_never(notice)

    def _on_advertisement_in_effect(self, id: AdvertisementId) -> None:
        held = self._held.get(id)
        if held is None:
            return  # It was withdrawn meanwhile.
        self.unconfirmed.discard(id)
        self._in_effect.add(id)
        while held:
            self._publish(id, held.popleft())

    # -- the connection to the broker ----------------------------------------------------------

    def _publish_next(
        self,
        advertisement: AdvertisementId,
        contents: Iterator[tuple[float, dict[str, Value]]],
        due: dict[str, Value] | None,
    ) -> None:
        if due is not None:
            self.publish(advertisement, due)
        following = next(contents, None)
        if following is not None:
            at_s, content = following
            self._agenda.plan(at_s, self._publish_next, advertisement, contents, content)

    def _publish(self, advertisement: AdvertisementId, content: dict[str, Value]) -> None:
        publication = Publication(
            publisher=self.name,
            sequence=next(self._sequence),
            advertisement=advertisement,
            content=content,
        )
        self._observer.on_published(publication, self._agenda.now_s)
        self._send(publication)

    def _send(self, message: Message) -> None:
        now_s = self._agenda.now_s
        received = Received(message, self._hop)
        self._agenda.plan(self._uplink.arrival_s(now_s), self._arrive, received, now_s)
