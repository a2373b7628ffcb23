"""What must be true of a network in memory when all is quiet, and of what was heard in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from godwit.broker.stimuli import Client as ClientHop
from godwit.client.session import ClientSession
from godwit.overlay.topology import Topology
from godwit.testing import MemoryNetwork


def wrong_tables(
    topology: Topology, network: MemoryNetwork, sessions: Sequence[ClientSession]
) -> list[str]:
    """Entries of routing tables that nobody stands behind, and those that are missing.

    Every broker knows every advertisement, and in which direction its publisher is.  The broker of
    a subscriber knows its subscriptions; another one knows of nobody else's.
    """
    wrong = []
    for name, node in network.nodes.items():
        node.broker.routing.check()
        tables = node.broker.routing.tables()
        announced = {
            str(id): _direction(topology, name, session)
            for session in sessions
            for id in session.advertisements
        }
        known = {id: hop.name for id, hop in tables.advertisements.items()}
        if known != announced:
            wrong.append(f"{name} knows the advertisements {known}, should be {announced}")
        wanted = {
            str(held.id): _direction(topology, name, session)
            for session in sessions
            for held in session.subscriptions.values()
        }
        for id, hop in tables.subscriptions.items():
            if wanted.get(id) != hop.name:
                wrong.append(f"{name} knows {id} of {hop.name}, should be {wanted.get(id)}")
        for id, direction in wanted.items():
            if direction not in topology.brokers and id not in tables.subscriptions:
                wrong.append(f"{name} does not know {id} of its client {direction}")
    return wrong


def _direction(topology: Topology, broker: str, session: ClientSession) -> str:
    """The client, if it is at `broker`, or the neighbour on the way to it."""
    if session.broker == broker:
        return session.name
    return topology.path(broker, session.broker)[1]


def in_two_places(network: MemoryNetwork, sessions: Iterable[ClientSession]) -> list[str]:
    """Clients that a broker still waits for where they are not at home."""
    home = {session.name: session.broker for session in sessions}
    return [
        f"{name} still has {hop.name}"
        for name, node in network.nodes.items()
        for hop in node.ports
        if isinstance(hop, ClientHop) and home.get(hop.name) != name
    ]


def flaws(heard: Sequence[int], said: Sequence[int], *, may_miss: int = 0) -> list[str]:
    """What is wrong with what somebody heard of what was said; the last words may be missing."""
    wrong = []
    if any(later <= earlier for earlier, later in pairwise(heard)):
        wrong.append("twice or out of order")
    if unasked := set(heard) - set(said):
        wrong.append(f"never said, or not asked for: {sorted(unasked)[:10]}")
    if lost := set(said[: len(said) - may_miss]) - set(heard):
        wrong.append(f"lost: {sorted(lost)[:10]} of {len(said)}")
    return wrong
