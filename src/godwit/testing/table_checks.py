"""What the routing tables of a quiet network must be, given what its clients hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from godwit.broker.routing import Tables
from godwit.broker.stimuli import Hop, LocalClient, Neighbour
from godwit.client.client_session import ClientSession
from godwit.overlay.topology import Topology

_Homes: TypeAlias = dict[str, tuple[str, str]]
"""Id -> (client, its broker)."""


def table_errors(
    topology: Topology, tables: Mapping[str, Tables], sessions: Iterable[ClientSession]
) -> list[str]:
    """What is wrong in the tables of these brokers, in words; none if all are right.

    Each broker holds all advertisements, with the next hop on the way to the publisher.  It holds
    the subscriptions of its own clients and those that its neighbours have sent to it, no others.
    """
    advertised: _Homes = {}
    subscribed: _Homes = {}
    for session in sessions:
        home = session.name, session.broker
        advertised |= {str(id): home for id in session.advertisements}
        subscribed |= {str(held.id): home for held in session.subscriptions.values()}
    wrong = []
    for broker, found in tables.items():
        expected: dict[str, Hop] = {
            id: _next_hop(topology, broker, *home) for id, home in advertised.items()
        }
        if found.advertisements != expected:
            wrong.append(f"{broker} has advertisements {found.advertisements}, not {expected}")
        neighbours = topology.neighbours(broker)
        if set(found.told) != set(neighbours):
            wrong.append(f"{broker} is linked with {sorted(found.told)}, not {sorted(neighbours)}")
        expected = {id: LocalClient(name) for id, (name, at) in subscribed.items() if at == broker}
        for other in neighbours:
            told = tables[other].told.get(broker, []) if other in tables else []
            expected |= dict.fromkeys(told, Neighbour(other))
        if found.subscriptions != expected:
            wrong.append(f"{broker} has subscriptions {found.subscriptions}, not {expected}")
        unknown = sorted(expected.keys() - subscribed.keys())
        wrong += [f"{broker} was sent {id}, which no client holds" for id in unknown]
    return wrong


def _next_hop(topology: Topology, broker: str, client: str, home: str) -> Hop:
    if broker == home:
        return LocalClient(client)
    return Neighbour(topology.path(broker, home)[1])
