"""One simulated broker: the real state machine between a modelled CPU and a modelled output.

    arrive --> [input queue] --> matching engine --> [output queues] --> link --> arrive
                                 Broker.handle

The broker is asked when the matching engine takes a message, and its effects leave when the
modelled matching delay has passed.  That is the same as asking at the end: a broker has one
engine, so nothing can reach its tables in between.  The output queues share the broker's
bandwidth, in order of arrival, control before normal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TypeAlias, assert_never

from godwit.broker.core import Broker
from godwit.broker.effects import Deliver, Effect, Notify, Send, SetTimer, Submit
from godwit.broker.invariants import check_step
from godwit.broker.stimuli import Client, Module, Neighbour, Received, Started, Stimulus, TimerFired
from godwit.content.messages import Message, Notice, Publication, size_bytes
from godwit.simulation.agenda import Agenda
from godwit.simulation.observers import DropReason, Observer
from godwit.simulation.resources import BrokerResources, LinkOptions
from godwit.simulation.servers import Server

#: Takes what a link carries: the message, the overlay links it has crossed, and when it left.
Receiver: TypeAlias = Callable[[Message | Notice, int, float], None]
Outgoing: TypeAlias = Send | Deliver | Notify


@dataclass(slots=True)
class Wire:
    """One direction of a link: never faster than `options`, never out of order."""

    receiver: Receiver
    options: LinkOptions
    random: Random
    last_arrival_s: float = 0.0
    blocked_until_s: float = 0.0
    slow_until_s: float = 0.0
    extra_s: float = 0.0

    def arrival_s(self, departs_s: float) -> float:
        options = self.options
        latency_s = options.latency_s_min
        if options.latency_s_mean > latency_s:
            latency_s += self.random.expovariate(1.0 / (options.latency_s_mean - latency_s))
        if departs_s < self.slow_until_s:
            latency_s += self.extra_s
        arrival_s = max(departs_s + latency_s, self.blocked_until_s, self.last_arrival_s)
        self.last_arrival_s = arrival_s
        return arrival_s


class SimulatedBroker:
    def __init__(
        self,
        broker: Broker,
        *,
        agenda: Agenda,
        resources: BrokerResources,
        observer: Observer,
        check: bool,
    ) -> None:
        self.broker = broker
        self.is_up = True
        self.wires: dict[Neighbour | Client, Wire] = {}
        self.queued_bytes = 0
        self.queued_bytes_max = 0
        self._agenda = agenda
        self._resources = resources
        self._observer = observer
        self._check = check
        self._engine = Server[Received](agenda, self._match)
        self._output = Server[Outgoing](agenda, self._transmit)

    @property
    def name(self) -> str:
        return self.broker.name

    @property
    def waiting(self) -> int:
        """Messages in the input and output queues."""
        return len(self._engine) + len(self._output)

    def start(self) -> None:
        self._stimulate(Started(), self._agenda.now_s)

    def arrive(self, received: Received) -> None:
        """A message has come to the input queue."""
        message = received.message
        if not self.is_up:
            self._observer.on_dropped(self.name, message, DropReason.DOWN)
            return
        is_publication = isinstance(message, Publication)
        size = size_bytes(message)
        if is_publication and self.queued_bytes + size > self._resources.queue_memory_bytes:
            self._observer.on_dropped(self.name, message, DropReason.MEMORY_FULL)
            return
        self._occupy(size)
        is_control = isinstance(message, Publication) and message.is_control
        self._engine.offer(received, is_control=is_control, ready_s=self._agenda.now_s)

    def crash(self) -> None:
        assert self.is_up, f"{self.name} is down already"
        self.is_up = False
        for received in self._engine.clear():
            self._observer.on_dropped(self.name, received.message, DropReason.CRASHED)
        for outgoing in self._output.clear():
            self._observer.on_dropped(self.name, _carried(outgoing), DropReason.CRASHED)
        self.queued_bytes = 0

    def restart(self, broker: Broker) -> None:
        assert not self.is_up, f"{self.name} is up already"
        self.broker = broker
        self.is_up = True
        self.start()

    def pause(self, until_s: float) -> None:
        self._engine.pause(until_s)
        self._output.pause(until_s)

    def _occupy(self, size: int) -> None:
        self.queued_bytes += size
        self.queued_bytes_max = max(self.queued_bytes_max, self.queued_bytes)

    def _match(self, received: Received, start_s: float) -> float:
        """The matching engine takes one message."""
        size = size_bytes(received.message)
        delay_s = self._resources.matching_delay_s(self.broker.routing.subscription_count)
        done_s = start_s + delay_s
        self.queued_bytes -= size
        self.broker.meters.on_handled(
            publications=isinstance(received.message, Publication),
            size_bytes=size,
            matching_delay_s=delay_s,
            now_s=done_s,
        )
        self._observer.on_handled(self.name, received, done_s)
        self._stimulate(received, done_s)
        return done_s

    def _stimulate(self, stimulus: Stimulus, done_s: float) -> None:
        effects = self.broker.handle(stimulus, now_s=done_s)
        if self._check:
            check_step(self.broker, stimulus, effects)
        for effect in effects:
            self._perform(effect, done_s)

    def _perform(self, effect: Effect, done_s: float) -> None:
        match effect:
            case Deliver(publication=carried) | Send(message=carried) | Notify(notice=carried):
                size = size_bytes(carried)
                self._occupy(size)
                self.broker.meters.on_queued(size)
                is_control = isinstance(carried, Publication) and carried.is_control
                self._output.offer(effect, is_control=is_control, ready_s=done_s)
            case Submit(module=module, message=message):
                self._agenda.plan(done_s, self.arrive, Received(message, Module(module)))
            case SetTimer(module=module, name=name, at_s=at_s):
                fired = TimerFired(module, name)
                self._agenda.plan(at_s, self._on_timer, self.broker, fired)
            case _:
                assert_never(effect)

    def _on_timer(self, owner: Broker, fired: TimerFired) -> None:
        if self.is_up and owner is self.broker:  # Timers of a crashed broker died with it.
            self._stimulate(fired, self._agenda.now_s)

    def _transmit(self, outgoing: Outgoing, start_s: float) -> float:
        """The output takes one message; it departs when its last byte has left."""
        carried = _carried(outgoing)
        size = size_bytes(carried)
        busy_s = size / self._resources.output_bandwidth_bytes_s
        departs_s = start_s + busy_s
        self.queued_bytes -= size
        self.broker.meters.on_sent(size, busy_s=busy_s, now_s=departs_s)
        wire = self.wires[outgoing.to]
        hops = 0 if isinstance(outgoing, Notify) else outgoing.hops
        self._agenda.plan(wire.arrival_s(departs_s), wire.receiver, carried, hops, departs_s)
        return departs_s


def _carried(outgoing: Outgoing) -> Message | Notice:
    match outgoing:
        case Deliver(publication=publication):
            return publication
        case Send(message=message):
            return message
        case Notify(notice=notice):
            return notice
        case _:
            assert_never(outgoing)
