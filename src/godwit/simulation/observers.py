"""Who watches a simulation: the oracle, the statistics, a trace.  All through one interface."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

from godwit.broker.effects import Decision, Effect
from godwit.broker.stimuli import Received
from godwit.content.messages import Message, Notice, Publication, Subscription, SubscriptionId


class DropReason(Enum):
    MEMORY_FULL = "queue memory is full"
    CRASHED = "was in a broker that crashed"
    DOWN = "arrived at a broker that is down"


class Observer:
    """Called at the moment a thing happens, in virtual time.  Override what you care about."""

    def on_handled(self, broker: str, received: Received, done_s: float) -> None:
        """A broker matched a message; its outputs leave at `done_s`."""

    def on_matched(
        self,
        broker: str,
        received: Received,
        effects: Sequence[Effect],
        *,
        arrived_s: float,
        started_s: float,
        done_s: float,
        size_bytes: int,
    ) -> None:
        """As `on_handled`, with all there is to know; it came at `arrived_s` and had to wait."""

    @property
    def wants_matched(self) -> bool:
        """Whether `on_matched` does anything."""
        return type(self).on_matched is not Observer.on_matched

    def on_published(self, publication: Publication, now_s: float) -> None:
        """A client handed a publication to its connection."""

    def on_delivered(
        self, clients: Sequence[str], publication: Publication, hops: int, now_s: float
    ) -> None:
        """Some clients of one broker received a publication."""

    def on_subscribing(self, client: str, subscription: Subscription, now_s: float) -> None:
        """A client asked for a subscription."""

    def on_in_effect(self, client: str, id: SubscriptionId, now_s: float) -> None:
        """A client learnt that its subscription is in effect."""

    def on_unsubscribing(self, client: str, id: SubscriptionId, now_s: float) -> None:
        """A client asked to end a subscription."""

    def on_dropped(self, broker: str, message: Message | Notice, reason: DropReason) -> None:
        """A broker could not keep a message."""

    def on_decision(self, broker: str, policy: str, decision: Decision, now_s: float) -> None:
        """A policy module of a broker decided something."""

    def on_moved(
        self,
        client: str,
        source: str,
        target: str,
        *,
        began_s: float,
        paused_s: float,
        now_s: float,
    ) -> None:
        """A client has moved; meanwhile what it published had to wait for `paused_s`."""


class Observers(Observer):
    """Several observers as one.  Those that do not care for an event are not called for it."""

    def __init__(self, observers: Iterable[Observer]) -> None:
        watching = tuple(observers)

        def caring(event: str) -> list[Observer]:
            silent = getattr(Observer, event)
            return [o for o in watching if getattr(type(o), event) is not silent]

        self._handled = [o.on_handled for o in caring("on_handled")]
        self._matched = [o.on_matched for o in caring("on_matched")]
        self._published = [o.on_published for o in caring("on_published")]
        self._delivered = [o.on_delivered for o in caring("on_delivered")]
        self._subscribing = [o.on_subscribing for o in caring("on_subscribing")]
        self._in_effect = [o.on_in_effect for o in caring("on_in_effect")]
        self._unsubscribing = [o.on_unsubscribing for o in caring("on_unsubscribing")]
        self._dropped = [o.on_dropped for o in caring("on_dropped")]
        self._decision = [o.on_decision for o in caring("on_decision")]
        self._moved = [o.on_moved for o in caring("on_moved")]

    def on_handled(self, broker: str, received: Received, done_s: float) -> None:
        for tell in self._handled:
            tell(broker, received, done_s)

    def on_matched(
        self,
        broker: str,
        received: Received,
        effects: Sequence[Effect],
        *,
        arrived_s: float,
        started_s: float,
        done_s: float,
        size_bytes: int,
    ) -> None:
        for tell in self._matched:
            tell(
                broker,
                received,
                effects,
                arrived_s=arrived_s,
                started_s=started_s,
                done_s=done_s,
                size_bytes=size_bytes,
            )

    @property
    def wants_matched(self) -> bool:
        return bool(self._matched)

    def on_published(self, publication: Publication, now_s: float) -> None:
        for tell in self._published:
            tell(publication, now_s)

    def on_delivered(
        self, clients: Sequence[str], publication: Publication, hops: int, now_s: float
    ) -> None:
        for tell in self._delivered:
            tell(clients, publication, hops, now_s)

    def on_subscribing(self, client: str, subscription: Subscription, now_s: float) -> None:
        for tell in self._subscribing:
            tell(client, subscription, now_s)

    def on_in_effect(self, client: str, id: SubscriptionId, now_s: float) -> None:
        for tell in self._in_effect:
            tell(client, id, now_s)

    def on_unsubscribing(self, client: str, id: SubscriptionId, now_s: float) -> None:
        for tell in self._unsubscribing:
            tell(client, id, now_s)

    def on_dropped(self, broker: str, message: Message | Notice, reason: DropReason) -> None:
        for tell in self._dropped:
            tell(broker, message, reason)

    def on_decision(self, broker: str, policy: str, decision: Decision, now_s: float) -> None:
        for tell in self._decision:
            tell(broker, policy, decision, now_s)

    def on_moved(
        self,
        client: str,
        source: str,
        target: str,
        *,
        began_s: float,
        paused_s: float,
        now_s: float,
    ) -> None:
        for tell in self._moved:
            tell(client, source, target, began_s=began_s, paused_s=paused_s, now_s=now_s)
