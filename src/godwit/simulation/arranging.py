"""What a simulated broker asks for that needs no queue: timers, pings, links, decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import assert_never

from godwit.broker.core import Broker
from godwit.broker.effects import (
    CloseLink,
    DriverEffect,
    DropLane,
    EpochFlipped,
    LinkEffect,
    NameContested,
    NameGranted,
    NameLost,
    NotifyAll,
    OpenLink,
    Ping,
    Report,
    SetTimer,
    Submit,
)
from godwit.broker.stimuli import Module, Neighbour, Pinged, Received, TimerFired
from godwit.simulation.agenda import Agenda
from godwit.simulation.observers import Observer
from godwit.simulation.queues import NeighbourPort


class Arranging:
    __slots__ = (
        "_agenda", "_observer", "_on_link_effect", "_ports", "_retry", "_round_trip_s", "_submit",
        "_wake",
    )  # fmt: skip

    def __init__(
        self,
        agenda: Agenda,
        observer: Observer,
        submit: Callable[[Broker, Received], None],
        wake: Callable[[Broker, TimerFired | Pinged], None],
        round_trip_s: Callable[[], float],
        on_link_effect: Callable[[str, LinkEffect], None],
        ports: Mapping[Neighbour, NeighbourPort],
        retry: Callable[[], None],
    ) -> None:
        """`submit` and `wake` get the broker that asked: it may have crashed since."""
        self._agenda = agenda
        self._observer = observer
        self._submit = submit
        self._wake = wake
        self._round_trip_s = round_trip_s
        self._on_link_effect = on_link_effect
        self._ports = ports
        self._retry = retry

    def perform(self, effect: NotifyAll | DriverEffect, broker: Broker, done_s: float) -> None:
        match effect:
            case Submit(module=module, message=message):
                submitted = Received(message, Module(module))
                self._agenda.plan(done_s, self._submit, broker, submitted)
            case SetTimer(module=module, name=name, at_s=at_s):
                fired = TimerFired(module, name)
                self._agenda.plan(max(at_s, done_s), self._wake, broker, fired)
            case Ping(module=module, client=client, brokers=brokers):
                found = {name: self._round_trip_s() for name, _ in brokers}
                # One ping to each broker at the same time, and the request and its answer.
                answered_s = done_s + self._round_trip_s() + max(found.values(), default=0.0)
                pinged = Pinged(module, client, found)
                self._agenda.plan(answered_s, self._wake, broker, pinged)
            case Report(policy=policy, decision=decision):
                self._observer.on_decision(broker.name, policy, decision, done_s)
            case NameGranted() | NameLost() | NameContested():
                raise AssertionError("simulated clients claim no names")
            case NotifyAll():
                pass  # Simulated clients do nothing about a gap.
            case EpochFlipped():
                # What waited for a path takes one of the next epoch.  (It waits for nothing else:
                # simulated brokers do not fail in a way that lets clients send again.)
                self._agenda.plan(done_s, self._retry)
            case CloseLink(is_down=True):
                pass  # Simulated brokers do not dial; a link that is there now is another one.
            case CloseLink(neighbour=neighbour):
                if (port := self._ports.get(neighbour)) is not None:
                    self._agenda.plan(done_s, self._close, broker.name, effect, port)
            case OpenLink() | DropLane():
                self._agenda.plan(done_s, self._on_link_effect, broker.name, effect)
            case _:
                assert_never(effect)

    def _close(self, broker: str, effect: CloseLink, port: NeighbourPort) -> None:
        """Close a link that was there; the other end may have opened a new one since."""
        if self._ports.get(effect.neighbour) is port:
            self._on_link_effect(broker, effect)
