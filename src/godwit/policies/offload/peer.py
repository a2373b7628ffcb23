"""PEER: which brokers are cluster-heads, which are edge brokers, and the cluster of each.

Paper    Cheung, thesis 4.1.1.
Words    edge broker -> EDGE: exactly one neighbour, serves subscribers; cluster-head -> HEAD: more
         than one neighbour, serves publishers; cluster -> a head and its edge brokers, with the
         name of the head.
Claim    An edge broker has no publishers and no traffic of others, so that moving its subscribers
         controls its whole load.
Departs  1. A broker finds its role from its own links, whenever it looks: nothing is configured,
            and a broker that gains or loses links changes its role.
         2. A broker with one neighbour and publishers of its own is a head without edge brokers:
            it takes no part, and its publishers stay where they are.
         3. A broker without neighbours has no role.
Tested   tests/policies/offload/test_peer.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from godwit.broker.stimuli import LinkKind, Neighbour
from godwit.errors import UsageError
from godwit.overlay.topology import Topology


class Role(Enum):
    HEAD = "head"
    EDGE = "edge"


@dataclass(frozen=True, slots=True)
class PeerPlace:
    """Where a broker is in the hierarchy."""

    role: Role
    cluster: str
    """The name of its cluster: that of its head."""


def place_of(
    broker: str, neighbours: Mapping[Neighbour, LinkKind], *, has_publishers: bool
) -> PeerPlace | None:
    """The place of a broker with these links; None if it is alone."""
    linked = [hop.name for hop, kind in neighbours.items() if kind is LinkKind.PRIMARY]
    if not linked:
        return None
    if len(linked) == 1 and not has_publishers:
        return PeerPlace(Role.EDGE, linked[0])
    return PeerPlace(Role.HEAD, broker)


def edges_of(topology: Topology, head: str) -> tuple[str, ...]:
    """The edge brokers of a cluster."""
    return tuple(name for name in topology.neighbours(head) if _is_edge(topology, name))


def check_peer(topology: Topology) -> None:
    """Raise UsageError unless the load balancer can work in this overlay."""
    if not topology.is_tree:
        raise UsageError("load balancing needs brokers that are linked as one tree")
    heads = [name for name in topology.brokers if len(topology.neighbours(name)) > 1]
    if not heads:
        raise UsageError(
            "load balancing needs a cluster-head, a broker with two links or more;"
            f" there are only {', '.join(topology.brokers)}"
        )


def _is_edge(topology: Topology, broker: str) -> bool:
    return len(topology.neighbours(broker)) == 1
