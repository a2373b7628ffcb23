"""Runs real brokers in virtual time.  Same seed and same commit, same run.

    simulator = Simulator(balanced_tree(7, fanout=2), seed=1)
    alice = simulator.client("alice", at="B7")
    simulator.at(1.0, alice.subscribe, Filter.parse("price < 100"))
    simulator.run(until_s=60.0)

What is real: brokers, routing, modules, messages.  What is modelled: CPU, bandwidth and memory of
a broker (resources.py), latency of a link, what goes wrong (faults.py).  Who watches: observers,
the oracle among them (oracle.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from random import Random
from typing import Any, TypeAlias

from godwit.broker.core import Broker
from godwit.broker.meters import Meters
from godwit.broker.modules import PolicyModule
from godwit.broker.stimuli import Client, Neighbour
from godwit.errors import UsageError
from godwit.overlay import Overlay
from godwit.overlay.topology import Topology
from godwit.overlay.tree import TreeRouting
from godwit.simulation.agenda import Action, Agenda
from godwit.simulation.clients import SimulatedClient
from godwit.simulation.faults import Fault
from godwit.simulation.homes import Home
from godwit.simulation.injection import inject
from godwit.simulation.node import NeighbourPort, SimulatedBroker, Wire
from godwit.simulation.observers import Observer, Observers
from godwit.simulation.resources import (
    DEFAULT_LINK,
    DEFAULT_RESOURCES,
    BrokerResources,
    LinkOptions,
)

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
        modules: Modules = no_modules,
        resources: BrokerResources | Mapping[str, BrokerResources] = DEFAULT_RESOURCES,
        link: LinkOptions = DEFAULT_LINK,
        faults: Iterable[Fault] = (),
        observers: Iterable[Observer] = (),
        check: bool = True,
    ) -> None:
        """`check` asserts the brokers' invariants after every step; benchmarks go without."""
        self.topology = topology
        self.agenda = Agenda()
        self.clients: dict[str, SimulatedClient] = {}
        self._random = Random(seed)
        self._overlay = overlay
        self._modules = modules
        self._resources = resources
        self._link = link
        self._observer = Observers(observers)
        self.brokers = {
            name: SimulatedBroker(
                self._make_broker(name),
                agenda=self.agenda,
                resources=self._resources_of(name),
                access=Wire(link, self._random),
                observer=self._observer,
                check=check,
                round_trip_s=self._round_trip_s,
            )
            for name in topology.brokers
        }
        for name in topology.brokers:
            for neighbour in topology.neighbours(name):
                self._connect(name, neighbour)
        for node in self.brokers.values():
            self.agenda.plan(0.0, node.start)
        for fault in faults:
            self.agenda.plan(
                fault.at_s, inject, fault, self.agenda, self.brokers, self._make_broker
            )

    @property
    def now_s(self) -> float:
        return self.agenda.now_s

    def client(self, name: str, *, at: str, may_move: bool = False) -> SimulatedClient:
        """A new client, attached to broker `at`.

        Only one that `may_move` can take subscriptions along: it has to look at every publication
        from the beginning, which takes time.  Publishers can always move.
        """
        if name in self.clients:
            raise UsageError(f"there is a client {name} already")
        if at not in self.brokers:
            raise UsageError(f"there is no broker {at}")
        client = SimulatedClient(
            name,
            at=at,
            may_move=may_move,
            find_home=self._home,
            agenda=self.agenda,
            observer=self._observer,
        )
        self.clients[name] = client
        return client

    def _home(self, client: str, at: str) -> Home:
        """A connection of a client to a broker."""
        return Home(Client(client), self.brokers[at], Wire(self._link, self._random), self.agenda)

    def _round_trip_s(self) -> float:
        """What a ping between a client and a broker takes; all are equally far from all."""
        return sum(self._link.draw_s(self._random) for _ in range(2))

    def at(self, at_s: float, action: Action, *args: Any) -> None:
        """Call `action(*args)` when the virtual clock shows `at_s`."""
        self.agenda.plan(at_s, action, *args)

    def run(self, *, until_s: float = inf) -> None:
        """Run until then, or until nothing is left to do."""
        self.agenda.run(until_s=until_s)

    def _make_broker(self, name: str) -> Broker:
        bandwidth = self._resources_of(name).output_bandwidth_bytes_s
        return Broker(
            name,
            routing=self._overlay(self.topology.neighbours(name)),
            modules=self._modules(name),
            meters=Meters(output_bandwidth_bytes_s=bandwidth, now_s=self.agenda.now_s),
        )

    def _resources_of(self, name: str) -> BrokerResources:
        if isinstance(self._resources, BrokerResources):
            return self._resources
        return self._resources[name]

    def _connect(self, sender: str, to: str) -> None:
        port = NeighbourPort(Wire(self._link, self._random), self.brokers[to].arrive)
        self.brokers[sender].neighbours[Neighbour(to)] = port
