"""A simulated application: it advertises, publishes, subscribes, moves and leaves.

The rules are those of the production session, in the same modules: client/holdings.py (what is
held), client/client_requests.py (when it is asked for), client/held_publications.py (when
publications are sent), client/deliveries.py (what is new).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from itertools import count
from math import inf
from typing import assert_never

from godwit.client.client_requests import ClientRequests
from godwit.client.held_publications import HeldPublication, HeldPublications
from godwit.client.holdings import Holdings
from godwit.content.channel_messages import ChannelSubscription, ChannelUnsubscription
from godwit.content.filters import Filter
from godwit.content.messages import (
    AdvertisementId,
    AdvertisementInEffect,
    GapNotice,
    Message,
    MoveTo,
    Notice,
    Paused,
    Publication,
    Refusal,
    SubscriptionId,
    SubscriptionInEffect,
    Swept,
)
from godwit.content.values import Value
from godwit.simulation.agenda import Agenda
from godwit.simulation.homes import Home
from godwit.simulation.observers import Observer
from godwit.simulation.simulated_move import SimulatedMover


class SimulatedClient:
    def __init__(
        self,
        name: str,
        *,
        at: str,
        find_home: Callable[[str, str], Home],
        agenda: Agenda,
        observer: Observer,
    ) -> None:
        self.name = name
        self.refusals: list[Refusal] = []
        self.unconfirmed: set[AdvertisementId | SubscriptionId] = set()
        """Requests that are not in effect yet."""
        self.has_left = False
        self.holdings = Holdings(name)
        self.requests = ClientRequests(self.holdings, self._request)
        self.mover = SimulatedMover(self, find_home, observer, agenda)
        self.home = find_home(name, at)
        self.home.listen(self.receive)
        self._agenda = agenda
        self._observer = observer
        self._sequence = count()
        self._waiting: list[Callable[[], None]] = []
        """Moves that wait for the current one, and leaving."""

    @cached_property
    def held(self) -> HeldPublications[dict[str, Value]]:
        """Made when it is needed: of thousands of clients most only subscribe, and stay."""
        return HeldPublications()

    # -- the application -----------------------------------------------------------------------

    def advertise(self, filter: Filter) -> AdvertisementId:
        advertised = self.holdings.advertise(filter)
        self.unconfirmed.add(advertised.id)
        self.requests.ask(advertised)
        return advertised.id

    def unadvertise(self, id: AdvertisementId) -> None:
        """Withdraw; publications that still wait for the advertisement are never sent."""
        self.unconfirmed.discard(id)
        self.requests.withdraw(self.holdings.advertisements.pop(id))
        self._release_held()

    def publish(self, advertisement: AdvertisementId, content: dict[str, Value]) -> None:
        if self.held.must_wait(self.holdings.advertisements[advertisement]):
            self.held.hold(HeldPublication(advertisement, content))
        else:
            self._publish(advertisement, content)

    def publish_all(
        self, advertisement: AdvertisementId, contents: Iterable[tuple[float, dict[str, Value]]]
    ) -> None:
        """Publish each content at its time, in order, one planned ahead of the other."""
        self._publish_next(advertisement, iter(contents), None)

    def subscribe(self, filter: Filter, *, local_only: bool = False) -> SubscriptionId:
        subscribed = self.holdings.subscribe(filter, local_only=local_only)
        id = subscribed.id
        self.unconfirmed.add(id)
        self._observer.on_subscribing(self.name, subscribed.request(), self._agenda.now_s)
        self.requests.ask(subscribed)
        return id

    def unsubscribe(self, id: SubscriptionId) -> None:
        self.unconfirmed.discard(id)
        self._observer.on_unsubscribing(self.name, id, self._agenda.now_s)
        subscribed = self.holdings.unsubscribe(id)
        if subscribed is not None:
            self.requests.withdraw(subscribed)

    def move(self, to: str, *, within_s: float = inf, session: str = "") -> None:
        """Move to another broker, after the moves that were requested before."""
        self._when_settled(partial(self.mover.start, to, within_s, session))

    def leave(self) -> None:
        """End the session: the broker withdraws everything."""
        self._when_settled(self._leave)

    def _leave(self) -> None:
        self.has_left = True
        for id in list(self.holdings.subscriptions):
            self._observer.on_unsubscribing(self.name, id, self._agenda.now_s)
            self.holdings.unsubscribe(id)
        self.holdings.advertisements.clear()
        self.unconfirmed.clear()
        self.home.leave()

    def _when_settled(self, act: Callable[[], None]) -> None:
        """Act now, or when the current move is over."""
        if self.requests.is_moving or self._waiting:
            self._waiting.append(act)
        else:
            act()

    # -- the broker ----------------------------------------------------------------------------

    def receive(self, notice: Notice) -> None:
        """Process an answer of the broker."""
        match notice:
            case SubscriptionInEffect(id=id):
                self.on_subscription_in_effect(self.holdings.known_as(id))
            case AdvertisementInEffect():
                self._on_advertisement_in_effect(notice)
            case Refusal():
                self.refusals.append(notice)
            case Swept() | Paused():
                pass  # They belong to a move that is over.
            case GapNotice():
                pass  # The simulated broker counts them.
            case MoveTo():
                # A client that is about to move has left the broker that asks, or will.
                if not self.requests.is_moving and not self._waiting:
                    self.move(notice.broker, within_s=notice.within_s, session=notice.session)
            case _:
                assert_never(notice)

    def on_subscription_in_effect(self, id: SubscriptionId) -> None:
        if id in self.unconfirmed:
            self.unconfirmed.discard(id)
            self._observer.on_in_effect(self.name, id, self._agenda.now_s)

    def _on_advertisement_in_effect(self, notice: AdvertisementInEffect) -> None:
        advertised = self.holdings.advertisements.get(notice.id)
        if advertised is not None and advertised.edition == notice.edition:
            self.unconfirmed.discard(notice.id)
            advertised.in_effect = True
            self._release_held()

    def _release_held(self) -> None:
        for advertisement, content in self.held.release_each(self.holdings.advertisements):
            self._publish(advertisement, content)

    def on_settled(self) -> None:
        """A move is over: continue with what waited for it."""
        self.held.is_paused = False
        self.requests.settle()
        self._release_held()
        while self._waiting and not self.requests.is_moving:
            self._waiting.pop(0)()

    # -- the connection ------------------------------------------------------------------------

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
        self.home.send(publication)

    def _request(self, request: Message | ChannelSubscription | ChannelUnsubscription) -> None:
        assert not isinstance(request, ChannelSubscription | ChannelUnsubscription)
        self.home.send(request)
