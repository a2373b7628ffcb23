"""Policy modules: what a broker hosts, what they see, and what they may ask for.

A module is a client that lives inside the broker.  It advertises, subscribes and publishes by
submitting messages, which enter the broker's input queue like everyone else's; control
publications reach it because it subscribed to their class.  Beyond that it may watch every
publication the broker handles, read the broker's meters, and set timers.  It cannot touch the
routing tables: policies propose, the broker disposes.

To add a policy, write a class with these methods and pass an instance to `Broker(modules=...)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from godwit.broker.meters import Meters
from godwit.broker.stimuli import Hop
from godwit.content.messages import (
    AdvertisementInEffect,
    Message,
    Publication,
    SubscriptionInEffect,
)


@dataclass(frozen=True, slots=True)
class Timer:
    """Call `on_timer(name)` at `at_s`."""

    name: str
    at_s: float


#: What a module may answer with: messages to submit, timers to set.
Request: TypeAlias = Message | Timer


@dataclass(frozen=True, slots=True)
class BrokerView:
    """What a module may read of its broker."""

    broker: str
    owner: str
    """The module's name as a client: its publisher name, and the first part of its ids."""

    meters: Meters


class PolicyModule(Protocol):
    @property
    def name(self) -> str:
        """Unique within the broker."""
        ...

    def start(self, view: BrokerView, now_s: float) -> Iterable[Request]:
        """The broker has started."""
        ...

    def on_in_effect(
        self, notice: AdvertisementInEffect | SubscriptionInEffect, now_s: float
    ) -> Iterable[Request]:
        """An advertisement or subscription of this module is in effect."""
        ...

    def on_delivery(self, publication: Publication, now_s: float) -> Iterable[Request]:
        """A publication this module subscribed to."""
        ...

    def on_publication(
        self, publication: Publication, last_hop: Hop, destinations: Sequence[Hop], now_s: float
    ) -> Iterable[Request]:
        """The broker handled a publication; these are the hops that got a copy."""
        ...

    def on_timer(self, name: str, now_s: float) -> Iterable[Request]: ...
