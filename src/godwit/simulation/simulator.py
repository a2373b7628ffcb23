"""Runs real brokers in virtual time.  Same seed and same commit, same run.

    simulator = Simulator(balanced_tree(7, fanout=2), seed=1)
    alice = simulator.client("alice", at="B7")
    simulator.at(1.0, alice.subscribe, Filter.parse("price < 100"))
    simulator.run(until_s=60.0)

Brokers, routing, modules and messages are those of production.  CPU, bandwidth and memory of a
broker (resources.py), latency of a link and faults (faults.py) are modelled.  Observers watch the
run, the oracle among them (oracle.py).

Brokers and links may come and go while it runs:

    simulator.at(20.0, simulator.add_broker, "B8", ["B2"])
    simulator.at(40.0, simulator.remove_broker, "B8")   # once its clients have moved away
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from random import Random
from typing import Any, TypeAlias, assert_never

from godwit.broker.core import Broker
from godwit.broker.effects import CloseLink, DropLane, LinkEffect, OpenLink
from godwit.broker.meters import Meters
from godwit.broker.modules import PolicyModule
from godwit.broker.routing import Place
from godwit.broker.stimuli import LinkDown, LinkKind, LinkUp, LocalClient, Neighbour
from godwit.content.link_messages import NetworkShape
from godwit.errors import UsageError
from godwit.overlay import Overlay, make_router
from godwit.overlay import overlay as overlay_named
from godwit.overlay.topology import Topology, topology
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.simulation.agenda import Action, Agenda
from godwit.simulation.faults import Fault
from godwit.simulation.homes import Home
from godwit.simulation.injection import inject
from godwit.simulation.observers import Observer, Observers
from godwit.simulation.queues import NeighbourPort
from godwit.simulation.resources import (
    DEFAULT_LINK,
    DEFAULT_RESOURCES,
    BrokerResources,
    LinkOptions,
)
from godwit.simulation.simulated_broker import SimulatedBroker
from godwit.simulation.simulated_client import SimulatedClient
from godwit.simulation.wires import Wire

#: How often a broker that is about to leave is looked at, at least.
IDLE_POLL_S = 0.001

#: The tree has none.
NO_SETTINGS: Mapping[str, Any] = {}

#: Makes the modules of a broker, by its name.
Modules: TypeAlias = Callable[[str], Sequence[PolicyModule]]


def no_modules(_broker: str) -> Sequence[PolicyModule]:
    return ()


class Simulator:
    def __init__(
        self,
        topology: Topology,
        *,
        seed: int,
        overlay: Overlay = TreeRouting,
        settings: Mapping[str, Any] = NO_SETTINGS,
        modules: Modules = no_modules,
        resources: BrokerResources | Mapping[str, BrokerResources] = DEFAULT_RESOURCES,
        link: LinkOptions = DEFAULT_LINK,
        faults: Iterable[Fault] = (),
        observers: Iterable[Observer] = (),
        check: bool = True,
    ) -> None:
        """`settings` are those of the overlay.

        `check` asserts the brokers' invariants after every step; benchmarks switch it off.
        """
        self.topology = topology
        """Changes when brokers and links come and go."""
        self.lane = 0
        """Of the links of this topology: the number of its epoch."""
        self._asked: set[tuple[str, str, int]] = set()
        """Brokers that wait for a link of the next epoch, the other broker, and the lane."""
        self._hops: dict[Neighbour, Neighbour] = {}
        self.agenda = Agenda()
        self.clients: dict[str, SimulatedClient] = {}
        self._random = Random(seed)
        self._overlay = overlay
        self.settings = settings
        """Of the overlay."""
        self._modules = modules
        self._resources = resources
        self._link = link
        self._observer = Observers(observers)
        self._check = check
        self.brokers = {name: self._make_node(name) for name in topology.brokers}
        for name in topology.brokers:
            for neighbour in topology.neighbours(name):
                self._connect(name, neighbour, self.lane)
        for node in self.brokers.values():
            self.agenda.plan(0.0, node.start)
        for fault in faults:
            self.agenda.plan(
                fault.at_s, inject, fault, self.agenda, self.brokers, self._make_broker
            )

    @property
    def now_s(self) -> float:
        return self.agenda.now_s

    def client(self, name: str, *, at: str) -> SimulatedClient:
        """A new client, attached to broker `at`."""
        if name in self.clients:
            raise UsageError(f"client {name} exists already")
        self.node(at)
        client = SimulatedClient(
            name,
            at=at,
            find_home=self._home,
            agenda=self.agenda,
            observer=self._observer,
        )
        self.clients[name] = client
        return client

    # -- brokers and links come and go ---------------------------------------------------------

    def add_broker(self, name: str, linked_to: Iterable[str] = ()) -> SimulatedBroker:
        """Start a broker with empty tables, and link it."""
        if name in self.brokers:
            raise UsageError(f"broker {name} exists already, or existed before")
        neighbours = [self.node(other).name for other in linked_to]
        self.topology = topology((*self.topology.brokers, name), self.topology.links)
        node = self.brokers[name] = self._make_node(name)
        node.start()
        for neighbour in neighbours:
            self.add_link(name, neighbour)
        return node

    def remove_broker(self, name: str) -> None:
        """Let a broker without clients leave the overlay when it has nothing left to send."""
        node = self.node(name)
        if node.clients:
            clients = ", ".join(sorted(client.name for client in node.clients))
            raise UsageError(f"broker {name} still has clients: {clients}; move them away first")
        if not node.is_idle:
            later_s = self.now_s + max(self._link.latency_s_mean, IDLE_POLL_S)
            self.agenda.plan(later_s, self.remove_broker, name)
            return
        for neighbour in self.topology.neighbours(name):
            self.remove_link(name, neighbour)
        for soft in list(node.neighbours):
            self._unlink(name, soft.name, soft.lane)
        node.leave()
        brokers = [broker for broker in self.topology.brokers if broker != name]
        self.topology = topology(brokers, self.topology.links)

    def add_link(self, a: str, b: str, kind: LinkKind = LinkKind.PRIMARY) -> None:
        """Link two brokers; both notice it now."""
        nodes = self.node(a), self.node(b)
        if Neighbour(b, self.lane) in nodes[0].neighbours:
            raise UsageError(f"brokers {a} and {b} are linked already")
        self.topology = topology(self.topology.brokers, {*self.topology.links, (a, b)})
        self._link_up(a, b, self.lane, kind)

    def _link_up(self, a: str, b: str, lane: int, kind: LinkKind) -> None:
        for name, other in ((a, b), (b, a)):
            self._connect(name, other, lane)
        for name, other in ((a, b), (b, a)):
            self.brokers[name].arrive_in_order(LinkUp(Neighbour(other, lane), kind))

    def remove_link(self, a: str, b: str) -> None:
        """Unlink two brokers; each notices it behind what the other has sent."""
        nodes = self.node(a), self.node(b)
        if Neighbour(b, self.lane) not in nodes[0].neighbours:
            raise UsageError(f"brokers {a} and {b} are not linked")
        links = {link for link in self.topology.links if set(link) != {a, b}}
        self.topology = topology(self.topology.brokers, links)
        self._unlink(a, b, self.lane)

    def _unlink(self, a: str, b: str, lane: int) -> None:
        for name, other in ((a, b), (b, a)):
            port = self.brokers[name].neighbours.pop(Neighbour(other, lane), None)
            if port is not None:  # Else that end has dropped the lane.
                self._plan_link_down(port)

    def _plan_link_down(self, port: NeighbourPort) -> None:
        """The other end notices behind what was sent that the link is closed."""
        self.agenda.plan(port.wire.end_s(self.now_s), port.close, LinkDown(port.hop))

    def use_shape(self, shape: NetworkShape) -> None:
        """The network has changed its shape: brokers that start now start in it."""
        self.topology = topology(self.topology.brokers, shape.links)
        self.lane = shape.epoch
        if shape.overlay:
            self._overlay, self.settings = overlay_named(shape.overlay), shape.settings

    def install(self, modules: Modules) -> None:
        """Start modules now, in brokers that were made without any."""
        self._modules = modules
        for name, node in self.brokers.items():
            if node.is_up:
                node.install(modules(name))

    def _on_link_effect(self, broker: str, effect: LinkEffect) -> None:
        """A router opens or closes a link; both ends may ask for the same."""
        linked = self.node(broker).neighbours
        match effect:
            case OpenLink(broker=other, kind=kind, lane=lane):
                if kind is LinkKind.SOFT:
                    self._open_soft(broker, other, lane)
                elif lane != self.lane:
                    self._open_lane(broker, other, lane, kind)
                elif Neighbour(other, lane) not in linked:
                    self.add_link(broker, other, kind)
            case CloseLink(neighbour=neighbour):
                if neighbour in linked and self._is_primary(broker, neighbour):
                    self.remove_link(broker, neighbour.name)
                elif neighbour in linked:
                    self._unlink(broker, neighbour.name, neighbour.lane)
            case DropLane(lane=lane):
                self._asked = {each for each in self._asked if (each[0], each[2]) != (broker, lane)}
                for port in self.node(broker).drop_lane(lane):
                    self._plan_link_down(port)
            case _:
                assert_never(effect)

    def _is_primary(self, broker: str, neighbour: Neighbour) -> bool:
        is_current = neighbour.lane == self.lane
        return is_current and neighbour.name in self.topology.neighbours(broker)

    def _open_soft(self, broker: str, other: str, lane: int) -> None:
        """A soft link beside the topology; none with a broker that is gone or down."""
        node = self.brokers.get(other)
        is_there = node is not None and node.is_up
        if is_there and Neighbour(other, lane) not in self.node(broker).neighbours:
            self._link_up(broker, other, lane, LinkKind.SOFT)

    def _open_lane(self, broker: str, other: str, lane: int, kind: LinkKind) -> None:
        """A link of the next epoch is up when both ends have begun to build it."""
        if (other, broker, lane) in self._asked:
            self._asked.remove((other, broker, lane))
            self._link_up(broker, other, lane, kind)
        else:
            self._asked.add((broker, other, lane))

    def inject(self, fault: Fault) -> None:
        """Start a fault now, whatever its time says."""
        inject(fault, self.agenda, self.brokers, self._make_broker)

    def node(self, name: str) -> SimulatedBroker:
        """A broker that has not left."""
        node = self.brokers.get(name)
        if node is None or node.has_left:
            raise UsageError(f"no broker {name}; there are {', '.join(self.topology.brokers)}")
        return node

    # -- parts ---------------------------------------------------------------------------------

    def _home(self, client: str, at: str) -> Home:
        """A connection of a client to a broker."""
        return Home(
            LocalClient(client), self.brokers[at], Wire(self._link, self._random), self.agenda
        )

    def _round_trip_s(self) -> float:
        """The time of a ping between a client and a broker; all are equally far from all."""
        return sum(self._link.draw_s(self._random) for _ in range(2))

    def at(self, at_s: float, action: Action, *args: Any) -> None:
        """Call `action(*args)` when the virtual clock shows `at_s`."""
        self.agenda.plan(at_s, action, *args)

    def run(self, *, until_s: float = inf) -> None:
        """Run until then, or until nothing is left to do."""
        self.agenda.run(until_s=until_s)

    def _make_node(self, name: str) -> SimulatedBroker:
        return SimulatedBroker(
            self._make_broker(name),
            agenda=self.agenda,
            resources=self._resources_of(name),
            access=Wire(self._link, self._random),
            observer=self._observer,
            check=self._check,
            round_trip_s=self._round_trip_s,
            on_link_effect=self._on_link_effect,
        )

    def _make_broker(self, name: str) -> Broker:
        bandwidth = self._resources_of(name).output_bandwidth_bytes_s
        return Broker(
            name,
            routing=make_router(
                Place.of(name, self.topology.neighbours(name), self.lane, self.settings),
                self._overlay,
            ),
            modules=self._modules(name),
            meters=Meters(output_bandwidth_bytes_s=bandwidth, now_s=self.agenda.now_s),
        )

    def _resources_of(self, name: str) -> BrokerResources:
        if isinstance(self._resources, BrokerResources):
            return self._resources
        return self._resources.get(name, DEFAULT_RESOURCES)

    def _connect(self, sender: str, to: str, lane: int) -> None:
        node = self.brokers[to]
        wire, hop = Wire(self._link, self._random), self._hop(sender, lane)
        port = NeighbourPort(wire, node.arrive, node.arrive_in_order, hop, node.acknowledge)
        self.brokers[sender].neighbours[self._hop(to, lane)] = port

    def _hop(self, broker: str, lane: int) -> Neighbour:
        """The same object each time: every message looks for one, and need not compare names."""
        hop = Neighbour(broker, lane)
        return self._hops.setdefault(hop, hop)
