"""What must be true of a storm when the network is quiet again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from godwit.broker.stimuli import LocalClient
from godwit.client.client_session import ClientSession
from godwit.testing.memory_network import MemoryNetwork
from godwit.testing.table_checks import table_errors


def network_errors(network: MemoryNetwork, sessions: Sequence[ClientSession]) -> list[str]:
    """Wrong entries of routing tables, and clients that a broker keeps although they have moved."""
    for node in network.nodes.values():
        node.broker.routing.check()
    tables = table_errors(network.topology, network.tables(), sessions)
    return tables or stale_ports(network, sessions)


def stale_ports(network: MemoryNetwork, sessions: Iterable[ClientSession]) -> list[str]:
    home = {session.name: session.broker for session in sessions}
    return [
        f"{name} still has client {hop.name}"
        for name, node in network.nodes.items()
        for hop in node.ports
        if isinstance(hop, LocalClient) and home.get(hop.name) != name
    ]


def delivery_errors(
    received: Sequence[int], published: Sequence[int], *, may_miss: int = 0
) -> list[str]:
    """What is wrong with the numbers that a client received; the last `may_miss` may be missing."""
    wrong = []
    if any(later <= earlier for earlier, later in pairwise(received)):
        wrong.append("twice or out of order")
    if unasked := set(received) - set(published):
        wrong.append(f"not published, or not subscribed to: {sorted(unasked)[:10]}")
    if lost := set(published[: len(published) - may_miss]) - set(received):
        wrong.append(f"lost: {sorted(lost)[:10]} of {len(published)}")
    return wrong
