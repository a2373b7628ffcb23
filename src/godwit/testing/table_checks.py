"""What the routing tables of a quiet network must be, given what its clients hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from godwit.broker.routing import Tables
from godwit.broker.stimuli import Hop, LocalClient, Neighbour
from godwit.client.client_session import ClientSession
from godwit.overlay.clusters.cluster_structure import ClusterStructure
from godwit.overlay.topology import Topology

_Homes: TypeAlias = dict[str, tuple[str, str]]
"""Id -> (client, its broker)."""


class ClientHoldings(NamedTuple):
    """What one client holds at its broker, by id."""

    client: str
    broker: str
    advertisements: Collection[str]
    subscriptions: Collection[str]


def table_errors(
    topology: Topology,
    tables: Mapping[str, Tables],
    sessions: Iterable[ClientSession],
    lane: int = 0,
) -> list[str]:
    """What is wrong in the tables of these brokers, in words; none if all are right.

    Each broker holds all advertisements, with the next hop on the way to the publisher.  It holds
    the subscriptions of its own clients and those that its neighbours have sent to it, no others.
    """
    return holding_errors(topology, tables, holdings_of(sessions), lane)


def holdings_of(sessions: Iterable[ClientSession]) -> list[ClientHoldings]:
    """What clients hold at the brokers where they are."""
    return [
        ClientHoldings(
            session.name,
            session.broker,
            session.advertisements,
            [each.id for each in session.subscriptions.values()],
        )
        for session in sessions
    ]


def holding_errors(
    topology: Topology,
    tables: Mapping[str, Tables],
    holdings: Iterable[ClientHoldings],
    lane: int = 0,
) -> list[str]:
    """As `table_errors`; the links of the topology are on this lane."""
    advertised: _Homes = {}
    subscribed: _Homes = {}
    for held in holdings:
        home = held.client, held.broker
        advertised |= {str(id): home for id in held.advertisements}
        subscribed |= {str(id): home for id in held.subscriptions}
    wrong = []
    for broker, found in tables.items():
        expected: dict[str, Hop] = {
            id: _next_hop(topology, broker, *home, lane) for id, home in advertised.items()
        }
        if found.advertisements != expected:
            wrong.append(f"{broker} has advertisements {found.advertisements}, not {expected}")
        neighbours = topology.neighbours(broker)
        if set(found.told) != set(neighbours):
            wrong.append(f"{broker} is linked with {sorted(found.told)}, not {sorted(neighbours)}")
        expected = {id: LocalClient(name) for id, (name, at) in subscribed.items() if at == broker}
        for other in neighbours:
            told = tables[other].told.get(broker, []) if other in tables else []
            expected |= dict.fromkeys(told, Neighbour(other, lane))
        if found.subscriptions != expected:
            wrong.append(f"{broker} has subscriptions {found.subscriptions}, not {expected}")
        unknown = sorted(expected.keys() - subscribed.keys())
        wrong += [f"{broker} was sent {id}, which no client holds" for id in unknown]
    return wrong


def cluster_holding_errors(
    structure: ClusterStructure,
    tables: Mapping[str, Tables],
    holdings: Iterable[ClientHoldings],
    lane: int = 0,
) -> list[str]:
    """What is wrong in the tables of brokers in clusters.

    Each holds the advertisements and subscriptions of its own clients, and what its mates have
    sent, which are subscriptions of their clients.
    """
    held = {broker: [each for each in holdings if each.broker == broker] for broker in tables}
    wrong = []
    for broker, found in tables.items():
        expected: dict[str, Hop] = {
            str(id): LocalClient(each.client) for each in held[broker] for id in each.advertisements
        }
        if found.advertisements != expected:
            wrong.append(f"{broker} has advertisements {found.advertisements}, not {expected}")
        links = structure.links(broker)
        if set(found.told) != set(links):
            wrong.append(f"{broker} is linked with {sorted(found.told)}, not {sorted(links)}")
        expected = {
            str(id): LocalClient(each.client) for each in held[broker] for id in each.subscriptions
        }
        for mate in structure.mates(broker):
            told = tables[mate].told.get(broker, [])
            expected |= dict.fromkeys(told, Neighbour(mate, lane))
            own = {str(id) for each in held[mate] for id in each.subscriptions}
            wrong += [f"{mate} has sent {id}, which no client holds" for id in set(told) - own]
        if found.subscriptions != expected:
            wrong.append(f"{broker} has subscriptions {found.subscriptions}, not {expected}")
    return wrong


def _next_hop(topology: Topology, broker: str, client: str, home: str, lane: int) -> Hop:
    if broker == home:
        return LocalClient(client)
    return Neighbour(topology.path(broker, home)[1], lane)
