"""What a simulated broker asks for that needs no queue: timers, pings, links, decisions."""

from __future__ import annotations

from collections.abc import Callable
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
    OpenLink,
    Ping,
    Report,
    SetTimer,
    Submit,
)
from godwit.broker.stimuli import Module, Pinged, Received, TimerFired
from godwit.simulation.agenda import Agenda
from godwit.simulation.observers import Observer


class Arranging:
    __slots__ = (
        "_agenda", "_observer", "_on_link_effect", "_retry", "_round_trip_s", "_submit", "_wake",
    )  # fmt: skip

    def __init__(
        self,
        agenda: Agenda,
        observer: Observer,
        submit: Callable[[Broker, Received], None],
        wake: Callable[[Broker, TimerFired | Pinged], None],
        round_trip_s: Callable[[], float],
        on_link_effect: Callable[[str, LinkEffect], None],
        retry: Callable[[], None],
    ) -> None:
        """`submit` and `wake` get the broker that asked: it may have crashed since."""
        self._agenda = agenda
        self._observer = observer
        self._submit = submit
        self._wake = wake
        self._round_trip_s = round_trip_s
        self._on_link_effect = on_link_effect
        self._retry = retry

    def perform(self, effect: DriverEffect, broker: Broker, done_s: float) -> None:
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
            case EpochFlipped():
                # What waited for a path takes one of the next epoch.  (It waits for nothing else:
                # simulated brokers do not fail in a way that lets clients send again.)
                self._agenda.plan(done_s, self._retry)
            case OpenLink() | CloseLink() | DropLane():
                self._agenda.plan(done_s, self._on_link_effect, broker.name, effect)
            case _:
                assert_never(effect)
