"""A simulated application: it advertises, publishes, subscribes, moves, and keeps the rules.

Two of them take code.  A publication waits at its client until its advertisement is in effect,
because a broker refuses it before; and while a client moves, what it asks for waits until it has
arrived.  Applications will not notice; `published` counts from the moment it is handed over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count
from typing import assert_never

from godwit.content.filters import Filter
from godwit.content.messages import (
    Advertisement,
    AdvertisementId,
    AdvertisementInEffect,
    Message,
    MoveTo,
    Notice,
    Paused,
    Publication,
    Refusal,
    Subscription,
    SubscriptionId,
    SubscriptionInEffect,
    Swept,
    Unadvertisement,
    Unsubscription,
)
from godwit.content.values import Value
from godwit.simulation.agenda import Agenda
from godwit.simulation.homes import Home
from godwit.simulation.moves import Mover
from godwit.simulation.observers import Observer


class SimulatedClient:
    def __init__(
        self,
        name: str,
        *,
        at: str,
        may_move: bool,
        find_home: Callable[[str, str], Home],
        agenda: Agenda,
        observer: Observer,
    ) -> None:
        self.name = name
        self.refusals: list[Refusal] = []
        self.unconfirmed: set[AdvertisementId | SubscriptionId] = set()
        """What it asked for and still wants, but was not told to be in effect."""
        self.mover = Mover(self, find_home, observer, agenda, may_move=may_move)
        self.home = find_home(name, at)
        self.home.listen(self.receive, self.mover.take if may_move else None)
        self._agenda = agenda
        self._observer = observer
        self._serial = count(1)
        self._sequence = count()
        self.advertisements: dict[AdvertisementId, Advertisement] = {}
        self.subscriptions: dict[SubscriptionId, Subscription] = {}
        """As the broker has them: a move gives them other ids than the application knows."""
        self._known_as: dict[SubscriptionId, SubscriptionId] = {}
        self.confirmed: set[AdvertisementId] = set()
        """Advertisements that the broker has, and that are in effect."""
        self._held: dict[AdvertisementId, deque[dict[str, Value]]] = {}
        self._waiting: deque[Callable[[], None]] = deque()

    # -- what the application does, now --------------------------------------------------------

    def advertise(self, filter: Filter) -> AdvertisementId:
        id = AdvertisementId(f"{self.name}/a{next(self._serial)}")
        self._held[id] = deque()
        self.unconfirmed.add(id)
        self._when_settled(partial(self._advertise, Advertisement(id=id, filter=filter)))
        return id

    def _advertise(self, advertisement: Advertisement) -> None:
        self.advertisements[advertisement.id] = advertisement
        self.send(advertisement)

    def unadvertise(self, id: AdvertisementId) -> None:
        """Withdraw; what still waits for the advertisement to be in effect is never published."""
        self._held.pop(id)
        self.unconfirmed.discard(id)
        self._when_settled(partial(self._unadvertise, id))

    def _unadvertise(self, id: AdvertisementId) -> None:
        del self.advertisements[id]
        self.confirmed.discard(id)
        self.send(Unadvertisement(id=id))

    def publish(self, advertisement: AdvertisementId, content: dict[str, Value]) -> None:
        if advertisement in self.confirmed and not self.mover.holds_publications:
            self._publish(advertisement, content)
        else:
            self._held[advertisement].append(content)

    def publish_all(
        self, advertisement: AdvertisementId, contents: Iterable[tuple[float, dict[str, Value]]]
    ) -> None:
        """Publish each content at its time, in order, one planned ahead of the other."""
        self._publish_next(advertisement, iter(contents), None)

    def subscribe(self, filter: Filter, *, local_only: bool = False) -> SubscriptionId:
        id = self.new_subscription_id()
        subscription = Subscription(id=id, filter=filter, local_only=local_only)
        self.unconfirmed.add(id)
        self._observer.on_subscribing(self.name, subscription, self._agenda.now_s)
        self._when_settled(partial(self._subscribe, subscription))
        return id

    def _subscribe(self, subscription: Subscription) -> None:
        self.subscriptions[subscription.id] = subscription
        self._known_as[subscription.id] = subscription.id
        self.send(subscription)

    def unsubscribe(self, id: SubscriptionId) -> None:
        self.unconfirmed.discard(id)
        self._observer.on_unsubscribing(self.name, id, self._agenda.now_s)
        self._when_settled(partial(self._unsubscribe, id))

    def _unsubscribe(self, id: SubscriptionId) -> None:
        current = self.subscriptions.pop(id).id
        del self._known_as[current]
        self.send(Unsubscription(id=current))

    def move(self, to: str) -> None:
        """Move to another broker, once those moves that were asked for before are over."""
        self._when_settled(partial(self.mover.start, to))

    def _when_settled(self, act: Callable[[], None]) -> None:
        """Do it now; while the client moves, when it has arrived."""
        if self.mover.is_moving or self._waiting:
            self._waiting.append(act)
        else:
            act()

    # -- what comes back -----------------------------------------------------------------------

    def receive(self, notice: Notice) -> None:
        """The broker answers.  (Publications go to the observers, many clients at a time.)"""
        match notice:
            case SubscriptionInEffect(id=id):
                self._on_subscription_in_effect(id)
            case AdvertisementInEffect(id=id):
                self._on_advertisement_in_effect(id)
            case Refusal():
                self.refusals.append(notice)
            case Swept() | Paused():
                pass  # Of a move that is over.
            case MoveTo(broker=broker):
                # If it is about to move already, the advice is about a place it has left.
                if self.mover.may_start and not self._waiting:
                    self.move(broker)
            case _:
                assert_never(notice)

    def _on_subscription_in_effect(self, id: SubscriptionId) -> None:
        known = self._known_as.get(id)
        if known is not None and known in self.unconfirmed:
            self.unconfirmed.discard(known)
            self._observer.on_in_effect(self.name, known, self._agenda.now_s)

    def _on_advertisement_in_effect(self, id: AdvertisementId) -> None:
        if id in self.advertisements:  # Else it was withdrawn meanwhile.
            self.unconfirmed.discard(id)
            self.confirmed.add(id)
            self._release_held()

    def _release_held(self) -> None:
        if self.mover.holds_publications:
            return
        for id, held in self._held.items():
            while held and id in self.confirmed:
                self._publish(id, held.popleft())

    # -- moving --------------------------------------------------------------------------------

    def new_subscription_id(self) -> SubscriptionId:
        return SubscriptionId(f"{self.name}/s{next(self._serial)}")

    def on_renamed(self, renamed: dict[SubscriptionId, Subscription]) -> None:
        """From now on the broker that counts has these, in the place of those with the old ids."""
        self._known_as = {}
        for known, subscription in list(self.subscriptions.items()):
            current = renamed[subscription.id]
            self.subscriptions[known] = current
            self._known_as[current.id] = known
            self._on_subscription_in_effect(current.id)

    def on_settled(self) -> None:
        """A move is over: go on with what waited for that."""
        self._release_held()
        while self._waiting and not self.mover.is_moving:
            self._waiting.popleft()()

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
        self.send(publication)

    def send(self, message: Message) -> None:
        self.home.send(message)
