"""One simulated broker: the real state machine between a modelled CPU and a modelled output.

    arrive --> [input queue] --> matching engine --> [output queues] --> link --> arrive
                                 Broker.handle

The broker is asked when the matching engine takes a message, and its effects leave when the
modelled matching delay has passed.  That is the same as asking at the end: a broker has one
engine, so nothing can reach its tables in between.  The output queues share the broker's
bandwidth, in order of arrival, control before normal; copies for the broker's own clients leave
together, when the last of them has been sent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias, assert_never

from godwit.broker.core import Broker
from godwit.broker.effects import Deliver, Notify, Send, SetTimer, Submit
from godwit.broker.invariants import check_step
from godwit.broker.stimuli import Client, Module, Neighbour, Received, Started, Stimulus, TimerFired
from godwit.content.messages import Message, Notice, Publication, size_bytes
from godwit.simulation.agenda import Agenda
from godwit.simulation.observers import DropReason, Observer
from godwit.simulation.resources import BrokerResources, LinkOptions
from godwit.simulation.servers import Server

#: What waits for the engine and for the output, with its size in bytes, all copies together.
Incoming: TypeAlias = tuple[Received, int]
Outgoing: TypeAlias = tuple[Send | Deliver | Notify, int]


class Wire:
    """One direction of a link: never faster than its options say, never out of order."""

    __slots__ = (
        "_last_arrival_s", "_latency_s_min", "_latency_s_tail", "_random",
        "blocked_until_s", "extra_s", "slow_until_s",
    )  # fmt: skip

    def __init__(self, options: LinkOptions, random: Random) -> None:
        self._latency_s_min = options.latency_s_min
        self._latency_s_tail = options.latency_s_mean - options.latency_s_min
        self._random = random
        self._last_arrival_s = 0.0
        self.blocked_until_s = 0.0
        self.slow_until_s = 0.0
        self.extra_s = 0.0

    def arrival_s(self, departs_s: float) -> float:
        arrival_s = departs_s + self._latency_s_min
        if self._latency_s_tail:
            arrival_s += self._random.expovariate(1.0 / self._latency_s_tail)
        if departs_s < self.slow_until_s:
            arrival_s += self.extra_s
        # Comparisons, not max(): this runs for every copy of every message.
        if arrival_s < self.blocked_until_s:  # noqa: PLR1730
            arrival_s = self.blocked_until_s
        if arrival_s < self._last_arrival_s:  # noqa: PLR1730
            arrival_s = self._last_arrival_s
        self._last_arrival_s = arrival_s
        return arrival_s


@dataclass(frozen=True, slots=True)
class NeighbourPort:
    wire: Wire
    arrive: Callable[[Received, float], None]


@dataclass(frozen=True, slots=True)
class ClientPort:
    wire: Wire
    receive: Callable[[Notice], None]


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
        self.name = broker.name
        self.is_up = True
        self.neighbours: dict[Neighbour, NeighbourPort] = {}
        self.clients: dict[Client, ClientPort] = {}
        self.queued_bytes = 0
        self.queued_bytes_max = 0
        self._hop = Neighbour(broker.name)
        self._agenda = agenda
        self._resources = resources
        self._queue_memory_bytes = resources.queue_memory_bytes
        self._output_bandwidth_bytes_s = resources.output_bandwidth_bytes_s
        self._observer = observer
        self._check = check
        self._engine = Server[Incoming](agenda, self._match)
        self._output = Server[Outgoing](agenda, self._transmit)
        self._read_matching_delay()

    @property
    def waiting(self) -> int:
        """Messages in the input and output queues."""
        return len(self._engine) + len(self._output)

    def start(self) -> None:
        self._stimulate(Started(), self._agenda.now_s)

    def pause(self, until_s: float) -> None:
        self._engine.pause(until_s)
        self._output.pause(until_s)

    def crash(self) -> None:
        assert self.is_up, f"{self.name} is down already"
        self.is_up = False
        for received, _ in self._engine.clear():
            self._observer.on_dropped(self.name, received.message, DropReason.CRASHED)
        for effect, _ in self._output.clear():
            self._observer.on_dropped(self.name, _carried(effect), DropReason.CRASHED)
        self._agenda.cancel(self._is_still_sending)
        self.queued_bytes = 0

    def restart(self, broker: Broker) -> None:
        assert not self.is_up, f"{self.name} is up already"
        self.broker = broker
        self.is_up = True
        self._read_matching_delay()
        self.start()

    # -- input queue, matching engine ----------------------------------------------------------

    def arrive(self, received: Received, _departed_s: float) -> None:
        """A message has come to the input queue."""
        message = received.message
        if not self.is_up:
            self._observer.on_dropped(self.name, message, DropReason.DOWN)
            return
        size = size_bytes(message)
        queued_bytes = self.queued_bytes + size
        is_control = False
        if isinstance(message, Publication):
            is_control = message.is_control
            if queued_bytes > self._queue_memory_bytes:
                self._observer.on_dropped(self.name, message, DropReason.MEMORY_FULL)
                return
        self.queued_bytes = queued_bytes
        if queued_bytes > self.queued_bytes_max:  # noqa: PLR1730  the hot path
            self.queued_bytes_max = queued_bytes
        self._engine.offer((received, size), is_control, self._agenda.now_s)

    def _match(self, incoming: Incoming, start_s: float) -> float:
        """The matching engine takes one message."""
        received, size = incoming
        is_publication = isinstance(received.message, Publication)
        delay_s = self._matching_delay_s
        done_s = start_s + delay_s
        self.queued_bytes -= size
        self.broker.meters.on_handled(is_publication, size, delay_s, done_s)
        self._observer.on_handled(self.name, received, done_s)
        self._stimulate(received, done_s)
        if not is_publication:
            self._read_matching_delay()
        return done_s

    def _read_matching_delay(self) -> None:
        subscriptions = self.broker.routing.subscription_count
        self._matching_delay_s = self._resources.matching_delay_s(subscriptions)

    def _stimulate(self, stimulus: Stimulus, done_s: float) -> None:
        effects = self.broker.handle(stimulus, now_s=done_s)
        if self._check:
            check_step(self.broker, stimulus, effects)
        for effect in effects:
            if isinstance(effect, (Send, Deliver, Notify)):
                self._send(effect, done_s)
            else:
                self._arrange(effect, done_s)

    def _arrange(self, effect: Submit | SetTimer, done_s: float) -> None:
        """What a module asked of the broker itself."""
        match effect:
            case Submit(module=module, message=message):
                submitted = Received(message, Module(module))
                self._agenda.plan(done_s, self._submit, self.broker, submitted)
            case SetTimer(module=module, name=name, at_s=at_s):
                fired = TimerFired(module, name)
                self._agenda.plan(at_s, self._on_timer, self.broker, fired)
            case _:
                assert_never(effect)

    def _submit(self, owner: Broker, received: Received) -> None:
        if owner is self.broker:  # What a crashed broker had in mind died with it.
            self.arrive(received, self._agenda.now_s)

    def _on_timer(self, owner: Broker, fired: TimerFired) -> None:
        if self.is_up and owner is self.broker:
            self._stimulate(fired, self._agenda.now_s)

    # -- output queues, links ------------------------------------------------------------------

    def _send(self, effect: Send | Deliver | Notify, ready_s: float) -> None:
        """Put a message, or the copies of one, into the output queues."""
        carried = _carried(effect)
        size = size_bytes(carried)
        if isinstance(effect, Deliver):
            size *= len(effect.to)
        queued_bytes = self.queued_bytes + size
        self.queued_bytes = queued_bytes
        if queued_bytes > self.queued_bytes_max:  # noqa: PLR1730  the hot path
            self.queued_bytes_max = queued_bytes
        self.broker.meters.on_queued(size)
        is_control = isinstance(carried, Publication) and carried.is_control
        self._output.offer((effect, size), is_control, ready_s)

    def _transmit(self, outgoing: Outgoing, start_s: float) -> float:
        """The output takes one message, or the copies of one; they depart with their last byte."""
        effect, size = outgoing
        busy_s = size / self._output_bandwidth_bytes_s
        departs_s = start_s + busy_s
        self.queued_bytes -= size
        copies = 1
        if isinstance(effect, Send):
            port = self.neighbours[effect.to]
            received = Received(effect.message, self._hop, effect.hops)
            arrival_s = port.wire.arrival_s(departs_s)
            self._agenda.plan(arrival_s, port.arrive, received, departs_s)
        elif isinstance(effect, Deliver):
            copies = len(effect.to)
            self._transmit_copies(effect, departs_s)
        else:
            client = self.clients[effect.to]
            arrival_s = client.wire.arrival_s(departs_s)
            self._agenda.plan(arrival_s, self._answer, client.receive, effect.notice, departs_s)
        self.broker.meters.on_sent(copies, size, busy_s, departs_s)
        return departs_s

    def _transmit_copies(self, deliver: Deliver, departs_s: float) -> None:
        """One event for all clients that the publication reaches at the same time."""
        reached: dict[float, list[str]] = {}
        clients = self.clients
        for client in deliver.to:
            arrival_s = clients[client].wire.arrival_s(departs_s)
            if arrival_s in reached:
                reached[arrival_s].append(client.name)
            else:
                reached[arrival_s] = [client.name]
        for arrival_s, names in reached.items():
            self._agenda.plan(arrival_s, self._deliver, names, deliver, departs_s)

    def _answer(
        self, receive: Callable[[Notice], None], notice: Notice, _departed_s: float
    ) -> None:
        receive(notice)

    def _deliver(self, names: list[str], deliver: Deliver, _departed_s: float) -> None:
        now_s = self._agenda.now_s
        self._observer.on_delivered(names, deliver.publication, deliver.hops, now_s)

    def _is_still_sending(self, action: object, args: tuple[Any, ...]) -> bool:
        """Is this the arrival of something that has not left this broker yet?"""
        if action in (self._answer, self._deliver):
            return bool(args[2] > self._agenda.now_s)
        for port in self.neighbours.values():
            if action == port.arrive:
                received, departs_s = args
                return bool(received.last_hop == self._hop and departs_s > self._agenda.now_s)
        return False


def _carried(effect: Send | Deliver | Notify) -> Message | Notice:
    if isinstance(effect, Send):
        return effect.message
    return effect.publication if isinstance(effect, Deliver) else effect.notice
