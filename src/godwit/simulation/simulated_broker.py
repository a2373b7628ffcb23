"""One simulated broker: the real state machine between a modelled CPU and a modelled output.

    arrive --> [input queue] --> matching engine --> [output queues] --> link --> arrive
                                 Broker.handle

`Broker.handle` is called when the matching engine takes a message, and its effects leave when the
modelled matching delay has passed.  That is the same as calling it at the end: a broker has one
engine, so nothing changes its tables in between.  The output queues share the broker's bandwidth,
in order of arrival, control before normal; the outputs of one message leave back to back, the
copies for local clients last.  A copy leaves with its last byte; those that leave within
COPIES_TOGETHER_S (queues.py) arrive together, with the last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from godwit.broker.core import Broker
from godwit.broker.effects import Deliver, Effect, LinkEffect, Notify, Send
from godwit.broker.invariants import check_step
from godwit.broker.modules import PolicyModule
from godwit.broker.stimuli import (
    Acknowledged,
    ClientLeft,
    EpochStimulus,
    LinkDown,
    Neighbour,
    OperatorCommand,
    Pinged,
    Received,
    Started,
    TimerFired,
)
from godwit.content.messages import Message, Publication, size_bytes
from godwit.simulation.agenda import Agenda
from godwit.simulation.arranging import Arranging
from godwit.simulation.attached_clients import AttachedClients
from godwit.simulation.observers import DropReason, Observer, cares
from godwit.simulation.queues import (
    COPIES_TOGETHER_S,
    Aside,
    Incoming,
    InOrder,
    NeighbourPort,
    Outgoing,
    Waiting,
    carried,
    in_groups,
    outgoing_bytes,
)
from godwit.simulation.resources import BrokerResources
from godwit.simulation.servers import Server, goes_first
from godwit.simulation.simulated_hold import SimulatedHold
from godwit.simulation.simulated_paths import SimulatedPaths
from godwit.simulation.wires import Wire


class SimulatedBroker:
    # Slots, here and in Server: a message finds its broker out of the cache, and they are the
    # shorter way to what it needs.
    __slots__ = (
        "_access", "_agenda", "_arranging", "_check", "_engine", "_engine_bytes",
        "_matching_delay_s", "_observer", "_output", "_paths", "_reads_delays", "_resources",
        "_wants_matched", "broker", "clients", "has_left", "hold", "is_up", "name", "neighbours",
        "queued_bytes", "queued_bytes_max",
    )  # fmt: skip

    def __init__(
        self,
        broker: Broker,
        *,
        agenda: Agenda,
        resources: BrokerResources,
        access: Wire,
        observer: Observer,
        check: bool,
        round_trip_s: Callable[[], float],
        on_link_effect: Callable[[str, LinkEffect], None],
    ) -> None:
        """`access` leads to all clients of the broker: copies of a publication arrive together.

        `round_trip_s` draws the time of a ping between a client and any broker.
        `on_link_effect` opens and closes links for the router.
        """
        self.broker = broker
        self.name = broker.name
        self.is_up = True
        self.has_left = False
        self.neighbours: dict[Neighbour, NeighbourPort] = {}
        self.clients = AttachedClients(agenda, observer)
        self.queued_bytes = 0
        self.queued_bytes_max = 0
        self.hold = SimulatedHold()
        self._access = access
        self._agenda = agenda
        self._resources = resources
        self._observer = observer
        self._wants_matched = cares(observer, "on_matched")
        self._check = check
        asked = self._submit, self._wake, round_trip_s, on_link_effect
        self._arranging = Arranging(agenda, observer, *asked, self.neighbours, self._retry)
        self._engine = Server[Incoming](agenda, self._match_waiting)
        self._output = Server[Waiting](agenda, self._transmit_waiting)
        self._adopt(broker)

    def _adopt(self, broker: Broker) -> None:
        self.broker = broker
        broker.memory_utilisation = self.memory_utilisation
        self._reads_delays = bool(broker.modules)
        self._read_subscription_count()
        self._paths: SimulatedPaths | None = None
        self._read_paths()

    def _read_paths(self) -> None:
        """The broker may have a router with several paths now."""
        paths, release = self.broker.paths, self._release
        if self._paths is None and paths is not None:
            self._paths = SimulatedPaths(
                paths, self._agenda, self.neighbours, release=release, stimulate=self._stimulate
            )

    def _retry(self) -> None:
        if self._paths is not None and self.is_up:
            self._paths.retry()

    def _release(self, received: Received) -> None:
        """What was held is the next for the engine."""
        size, now_s = size_bytes(received.message), self._agenda.now_s
        self._occupy(size)
        self._engine.wait((received, size, now_s), True, now_s)

    def acknowledge(self, acknowledged: Acknowledged) -> None:
        if self._paths is not None and self.is_up:
            self._paths.on_acknowledged(acknowledged)

    @property
    def waiting(self) -> int:
        """Messages in the input and output queues; not the outputs of one still in the engine."""
        return self._engine.waiting + self._output.ready

    @property
    def is_idle(self) -> bool:
        """Whether no message is in a queue or being handled or sent."""
        now_s, engine, output = self._agenda.now_s, self._engine, self._output
        is_waiting = engine.waiting or output.waiting or (self._paths and not self._paths.is_idle)
        return not is_waiting and engine.free_at_s <= now_s and output.free_at_s <= now_s

    @property
    def memory_bytes(self) -> float:
        """Memory of the matching engine and of the queues."""
        return self._engine_bytes + self.queued_bytes

    @property
    def resources(self) -> BrokerResources:
        return self._resources

    def vary(self, resources: BrokerResources) -> None:
        """From now on these are the resources; the broker and its meters are not told."""
        self._resources = resources
        self._read_subscription_count()

    def memory_utilisation(self) -> float:
        return self.memory_bytes / self._resources.memory_bytes

    def start(self) -> None:
        self._stimulate(Started())

    def install(self, modules: Sequence[PolicyModule]) -> None:
        """Start modules in a broker that has none."""
        self.broker.install(modules)
        self._reads_delays = bool(modules)
        self.start()

    def leave(self) -> None:
        """The broker has left the overlay; what still arrives is dropped."""
        self.is_up = False
        self.has_left = True

    def pause(self, until_s: float) -> None:
        self._engine.pause(until_s)
        self._output.pause(until_s)

    def crash(self) -> None:
        assert self.is_up, f"{self.name} is down already"
        self.is_up = False
        for received, *_ in self._engine.clear():
            if isinstance(received, Received):
                self._observer.on_dropped(self.name, received.message, DropReason.CRASHED)
        for effect, *_ in self._output.clear():
            self._observer.on_dropped(self.name, carried(effect), DropReason.CRASHED)
        for unfinished in self._agenda.cancel(self._is_still_sending):
            self._observer.on_dropped(self.name, carried(unfinished), DropReason.CRASHED)
        self.clients.last_delivered.stop_waiting()
        self.queued_bytes = 0
        self.hold.clear()

    def restart(self, broker: Broker) -> None:
        assert not self.is_up, f"{self.name} is up already"
        self.is_up = True
        self._adopt(broker)
        self.start()

    def command(self, module: str, command: str) -> None:
        """An operator tells a module what to do."""
        self._stimulate_soon(OperatorCommand(module, command))

    def perform(self, effects: Sequence[Effect]) -> None:
        """Perform effects that did not come from the broker: an operator asks for them."""
        self._perform(effects, self._agenda.now_s, 0)

    # -- input queue, matching engine ----------------------------------------------------------

    def arrive(self, received: Received, _departed_s: float) -> None:
        """A message arrives: to the matching engine if that is free, else to the input queue."""
        if not self.is_up:
            reason = DropReason.LEFT if self.has_left else DropReason.DOWN
            self._observer.on_dropped(self.name, received.message, reason)
            return
        if self.hold.is_changing and self.hold.takes(received, self.broker):
            return
        if self.queued_bytes and self._is_too_much(received.message):
            self._observer.on_dropped(self.name, received.message, DropReason.MEMORY_FULL)
            if self._paths is not None:
                self._paths.handled(received, {})
            return
        now_s = self._agenda.now_s
        engine = self._engine
        if engine.free_at_s <= now_s and not engine.waiting:
            engine.free_at_s = self._match(received, now_s, now_s, False)
            return
        message = received.message
        size = size_bytes(message)
        self._occupy(size)
        if isinstance(message, Publication):
            # The rate of (4.1) is that of arrivals: in an overload more comes than is matched.
            self.broker.meters.on_handled(1, 0, 0.0, now_s, messages=0)
        engine.wait((received, size, now_s), goes_first(message), now_s)

    def arrive_in_order(self, stimulus: InOrder) -> None:
        """Handle a stimulus behind the messages that arrived before it; it takes no time."""
        if not self.is_up:
            return
        now_s, engine = self._agenda.now_s, self._engine
        if engine.free_at_s <= now_s and not engine.waiting:
            self._stimulate(stimulus)
        else:
            engine.wait((stimulus, 0, now_s), False, now_s)

    def _is_too_much(self, message: Message) -> bool:
        """Only publications are dropped; what they cause in the output queues is kept."""
        room_bytes = self._resources.memory_bytes - self.memory_bytes
        return isinstance(message, Publication) and size_bytes(message) > room_bytes

    def _match_waiting(self, incoming: Incoming, start_s: float) -> float:
        received, size, arrived_s = incoming
        if not isinstance(received, Received):
            self._stimulate(received)
            return start_s
        self.queued_bytes -= size
        return self._match(received, arrived_s, start_s, True)

    def _match(
        self, received: Received, arrived_s: float, start_s: float, is_counted: bool
    ) -> float:
        """The matching engine takes one message; `is_counted` if its arrival was metered."""
        if self._paths is not None and self._paths.takes(received, start_s):
            return start_s
        message, hop = received.message, received.last_hop
        publications, size = 0, 0
        if type(message) is Publication:
            publications, size = 1, message.size_bytes
        size = size or size_bytes(message)  # Nearly all publications have their size.
        delay_s = self._matching_delay_s
        done_s = start_s + delay_s
        broker = self.broker
        broker.meters.on_handled(0 if is_counted else publications, size, delay_s, done_s)
        if self._reads_delays:
            broker.delays.on_matched(start_s - arrived_s, delay_s)
        self._observer.on_handled(self.name, received, done_s)
        if type(message) is Publication and type(hop) is Neighbour:
            effects = broker.forward(message, hop, received.hops, done_s)
        else:
            effects = broker.handle(received, now_s=done_s)
        if self._check:
            check_step(broker, received, effects)
        if self._wants_matched:
            self._observer.on_matched(
                self.name, received, effects, done_s, start_s - arrived_s, delay_s, size
            )
        if self._paths is not None:
            self._paths.performed(effects, received)
        if effects:
            output = self._output
            if output.free_at_s <= done_s and not output.waiting:
                # The outputs of one message leave back to back.
                output.free_at_s = self._transmit(effects, size, done_s, done_s)
            else:
                self._queue(effects, done_s, size)
        if not publications:
            self._read_subscription_count()
        return done_s

    def _read_subscription_count(self) -> None:
        subscriptions = self.broker.routing.subscription_count
        self._matching_delay_s = self._resources.matching_delay_s(subscriptions)
        self._engine_bytes = self._resources.engine_bytes(subscriptions)

    def _stimulate(self, stimulus: Started | Aside | InOrder) -> None:
        """Handle a stimulus that is not a message: it takes no time."""
        now_s = self._agenda.now_s
        if isinstance(stimulus, ClientLeft) and not self.clients.has_left(stimulus.client):
            return
        if isinstance(stimulus, EpochStimulus):
            effects = self.hold.change_epoch(self.broker, stimulus, now_s)
            self._read_paths()
        else:
            effects = self.broker.handle(stimulus, now_s=now_s)
        if self._paths is not None:
            if isinstance(stimulus, LinkDown):
                self._paths.close(stimulus.neighbour)
            self._paths.performed(effects)
        self._perform(effects, now_s, 0)
        if isinstance(stimulus, InOrder):
            self._read_subscription_count()

    def drop_lane(self, lane: int) -> list[NeighbourPort]:
        """An epoch is over: send nothing there any more, and handle what waited for its end."""
        self.hold.read_phase(self.broker)
        dropped = [neighbour for neighbour in self.neighbours if neighbour.lane == lane]
        ports = [self.neighbours.pop(neighbour) for neighbour in dropped]
        if self._paths is not None:
            self._paths.close_all(dropped)
        for received in self.hold.drop_lane(lane):
            self.arrive(received, self._agenda.now_s)
        return ports

    def _perform(self, effects: Sequence[Effect], done_s: float, publication_bytes: int) -> None:
        """Perform effects; a publication among them has `publication_bytes`."""
        output = self._output
        if output.free_at_s <= done_s and not output.waiting:
            output.free_at_s = self._transmit(effects, publication_bytes, done_s, done_s)
        else:
            self._queue(effects, done_s, publication_bytes)

    def _queue(self, effects: Sequence[Effect], done_s: float, publication_bytes: int) -> None:
        """Perform effects while the output is busy."""
        output = self._output
        for effect in effects:
            if isinstance(effect, Outgoing):
                size = outgoing_bytes(effect, publication_bytes)
                self._occupy(size)
                self.broker.meters.on_queued(size)
                is_first = goes_first(carried(effect))
                output.wait((effect, size, publication_bytes, done_s), is_first, done_s)
            else:
                self._arranging.perform(effect, self.broker, done_s)

    def _submit(self, owner: Broker, received: Received) -> None:
        if owner is self.broker:  # Else the broker has crashed since.
            self.arrive(received, self._agenda.now_s)

    def _wake(self, owner: Broker, stimulus: TimerFired | Pinged) -> None:
        if self.is_up and owner is self.broker:
            self._stimulate_soon(stimulus)

    def _stimulate_soon(self, stimulus: Aside) -> None:
        """Handle it now, or when the engine has finished its message: a broker does one at a time.

        Else a module could submit something before what it submitted because of that message.
        """
        now_s, engine = self._agenda.now_s, self._engine
        if engine.free_at_s <= now_s and not engine.waiting:
            self._stimulate(stimulus)
        else:
            engine.wait((stimulus, 0, now_s), True, now_s)

    # -- output queues, links ------------------------------------------------------------------

    def _transmit_waiting(self, waiting: Waiting, start_s: float) -> float:
        effect, size, publication_bytes, ready_s = waiting
        self.queued_bytes -= size
        self.broker.meters.on_dequeued(size)
        return self._transmit((effect,), publication_bytes, ready_s, start_s)

    def _transmit(
        self, effects: Sequence[Effect], publication_bytes: int, ready_s: float, start_s: float
    ) -> float:
        """The output takes some effects one by one; return when the last byte departs."""
        agenda, broker = self._agenda, self.broker
        bandwidth_bytes_s = self._resources.output_bandwidth_bytes_s
        for effect in effects:
            copies = 1
            if type(effect) is Send:
                message = effect.message
                size = publication_bytes if type(message) is Publication else size_bytes(message)
                busy_s = size / bandwidth_bytes_s
                departs_s = start_s + busy_s
                port = self.neighbours.get(effect.to)
                if port is not None:  # Else the link was closed while the message waited.
                    received = Received(message, port.hop, effect.hops)
                    arrives_s = port.wire.arrival_s(departs_s)
                    agenda.plan_arrival(arrives_s, port.arrive, received, departs_s)
            elif type(effect) is Deliver:
                copies = len(effect.to)
                size = publication_bytes * copies
                busy_s = size / bandwidth_bytes_s
                departs_s = start_s + busy_s
                last = effect
                if departs_s - start_s > COPIES_TOGETHER_S:
                    *groups, (last, _) = in_groups(effect, start_s, departs_s)
                    for some, left_s in groups:
                        arrives_s = self._access.arrival_s(left_s)
                        agenda.plan_arrival(arrives_s, self.clients.deliver_group, some, left_s)
                arrives_s = self._access.arrival_s(departs_s)
                agenda.plan_arrival(arrives_s, self.clients.deliver, last, departs_s)
            elif type(effect) is Notify:
                size = size_bytes(effect.notice)
                busy_s = size / bandwidth_bytes_s
                departs_s = start_s + busy_s
                arrives_s = self._access.arrival_s(departs_s)
                agenda.plan_arrival(arrives_s, self.clients.answer, effect, departs_s)
            else:
                self._arranging.perform(effect, broker, ready_s)
                continue
            broker.meters.on_sent(copies, size, busy_s, departs_s)
            if self._reads_delays:
                broker.delays.on_sent(departs_s - ready_s, type(effect) is Send)
            start_s = departs_s
        return start_s

    def _occupy(self, size: int) -> None:
        self.queued_bytes += size
        self.queued_bytes_max = max(self.queued_bytes_max, self.queued_bytes)

    def _is_still_sending(self, arrive: object, what: Any, departed_s: float) -> bool:
        """Whether this is the arrival of something that has not left this broker yet."""
        if departed_s <= self._agenda.now_s:
            return False
        clients = self.clients
        if arrive in (clients.answer, clients.deliver, clients.deliver_group):
            return True
        for port in self.neighbours.values():
            if arrive == port.arrive:
                hop = what.last_hop
                return isinstance(hop, Neighbour) and hop.name == self.name
        return False
