"""Applies a declared fault to simulated brokers and their wires."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import assert_never

from godwit.broker.core import Broker
from godwit.simulation.agenda import Agenda
from godwit.simulation.faults import BrokerPause, Crash, Delay, Fault, Partition, Restart
from godwit.simulation.simulated_broker import SimulatedBroker
from godwit.simulation.wires import Wire

Nodes = Mapping[str, SimulatedBroker]


def inject(
    fault: Fault, agenda: Agenda, nodes: Nodes, make_broker: Callable[[str], Broker]
) -> None:
    """Start `fault` now."""
    match fault:
        case Crash(broker=broker):
            nodes[broker].crash()
        case Restart(broker=broker):
            nodes[broker].restart(make_broker(broker))
        case BrokerPause(broker=broker, for_s=for_s):
            nodes[broker].pause(agenda.now_s + for_s)
        case Delay(link=(a, b), for_s=for_s, extra_s=extra_s):
            for wire in (*_wires(nodes, a, b), *_wires(nodes, b, a)):
                wire.slow_down(agenda.now_s + for_s, extra_s)
        case Partition(brokers=brokers, for_s=for_s):
            for wire in _wires_between(nodes, brokers):
                wire.block(agenda.now_s + for_s)
        case _:
            assert_never(fault)


def _wires(nodes: Nodes, sender: str, to: str) -> list[Wire]:
    """The wires from one broker to another, one for each lane."""
    ports = nodes[sender].neighbours.items()
    return [port.wire for neighbour, port in ports if neighbour.name == to]


def _wires_between(nodes: Nodes, brokers: frozenset[str]) -> Iterator[Wire]:
    """Every wire that crosses the border between `brokers` and the rest."""
    for name, node in nodes.items():
        for neighbour, port in node.neighbours.items():
            if (name in brokers) != (neighbour.name in brokers):
                yield port.wire
