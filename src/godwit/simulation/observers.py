"""The interface of observers: the oracle, the statistics, a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from godwit.broker.effects import Decision, Effect
from godwit.broker.stimuli import Received
from godwit.content.messages import Message, Notice, Publication, Subscription, SubscriptionId


class DropReason(Enum):
    MEMORY_FULL = "queue memory is full"
    CRASHED = "was in a broker that crashed"
    DOWN = "arrived at a broker that is down"
    LEFT = "arrived at a broker that has left"


class Observer:
    """Called when something happens, in virtual time.  Override the events of interest."""

    def on_handled(self, broker: str, received: Received, done_s: float) -> None:
        """A broker matched a message; its outputs leave at `done_s`."""

    def on_matched(
        self,
        broker: str,
        received: Received,
        effects: Sequence[Effect],
        time_s: float,
        queue_delay_s: float,
        matching_delay_s: float,
        size_bytes: int,
    ) -> None:
        """As `on_handled`, with effects and delays; its outputs leave at `time_s`."""

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
        self, client: str, source: str, target: str, took_s: float, paused_s: float, now_s: float
    ) -> None:
        """A client has moved; its publications waited for `paused_s`."""


EVENTS = tuple(name for name in vars(Observer) if name.startswith("on_"))


def cares(observer: Observer, event: str) -> bool:
    """Whether an observer overrides an event."""
    told = getattr(observer, event)
    return getattr(told, "__func__", told) is not getattr(Observer, event)


class Observers(Observer):
    """Several observers as one.  An event goes only to those that override it."""

    def __init__(self, observers: Iterable[Observer]) -> None:
        watching = tuple(observers)
        for event in EVENTS:
            tellers = [getattr(each, event) for each in watching if cares(each, event)]
            # A single observer is called directly: most events occur for every message.
            if tellers:
                setattr(self, event, tellers[0] if len(tellers) == 1 else _telling(tellers))


def _telling(tellers: Sequence[Callable[..., None]]) -> Callable[..., None]:
    def tell(*what: object) -> None:
        for teller in tellers:
            teller(*what)

    return tell
