"""Makes a declared fault happen to simulated brokers and their wires."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, assert_never

from godwit.broker.core import Broker
from godwit.broker.stimuli import Neighbour
from godwit.simulation.agenda import Action, Agenda
from godwit.simulation.faults import Crash, Delay, Fault, Partition, Pause, Restart
from godwit.simulation.node import SimulatedBroker, Wire

Nodes = Mapping[str, SimulatedBroker]


def inject(
    fault: Fault, agenda: Agenda, nodes: Nodes, make_broker: Callable[[str], Broker]
) -> None:
    """Let `fault` begin now."""
    match fault:
        case Crash(broker=broker):
            _crash(nodes[broker], agenda)
        case Restart(broker=broker):
            nodes[broker].restart(make_broker(broker))
        case Pause(broker=broker, for_s=for_s):
            nodes[broker].pause(agenda.now_s + for_s)
        case Delay(link=(a, b), for_s=for_s, extra_s=extra_s):
            for wire in (_wire(nodes, a, b), _wire(nodes, b, a)):
                wire.slow_until_s = agenda.now_s + for_s
                wire.extra_s = extra_s
        case Partition(brokers=brokers, for_s=for_s):
            for wire in _wires_between(nodes, brokers):
                wire.blocked_until_s = agenda.now_s + for_s
        case _:
            assert_never(fault)


def _crash(node: SimulatedBroker, agenda: Agenda) -> None:
    node.crash()
    receivers = [wire.receiver for wire in node.wires.values()]

    def had_not_left(action: Action, args: tuple[Any, ...]) -> bool:
        """Was this arrival planned for something that the broker was still sending?"""
        return action in receivers and args[2] > agenda.now_s

    agenda.cancel(had_not_left)


def _wire(nodes: Nodes, sender: str, to: str) -> Wire:
    return nodes[sender].wires[Neighbour(to)]


def _wires_between(nodes: Nodes, brokers: frozenset[str]) -> Iterator[Wire]:
    """Every wire that crosses the border between `brokers` and the rest."""
    for name, node in nodes.items():
        for hop, wire in node.wires.items():
            if isinstance(hop, Neighbour) and (name in brokers) != (hop.name in brokers):
                yield wire
