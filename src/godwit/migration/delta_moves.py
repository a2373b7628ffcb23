"""A Delta-move: a broker leaves a primary neighbour for another, with all brokers behind it.  Pure.

Paper    Opportunistic multipath forwarding in content-based publish/subscribe overlays (Publiy),
         section 6.
Words    A leaves N for B, the move path is the one from N to B -> DeltaMove.
Claim    The links afterwards are a tree of the same brokers.
Departs  The paper changes the tables of the brokers near the move, in four phases.  It says nothing
         about order, acknowledgement or failures.  Here the move is a change of the shape of the
         network, as any other (overlay/epochs/): see decision 39.
Tested   tests/migration/test_delta_moves.py
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from godwit.errors import UsageError
from godwit.overlay.topology import Topology, topology


@dataclass(frozen=True, slots=True)
class DeltaMove:
    broker: str
    leaves: str
    joins: str

    def apply(self, tree: Topology) -> Topology:
        """The tree afterwards; raise UsageError if it is not possible."""
        for name in (self.broker, self.leaves, self.joins):
            if name not in tree.brokers:
                raise UsageError(f"the network has no broker {name}")
        if self.leaves not in tree.neighbours(self.broker):
            neighbours = ", ".join(tree.neighbours(self.broker))
            raise UsageError(
                f"{self.broker} has no link with {self.leaves} that it could leave;"
                f" it is linked with {neighbours}"
            )
        path = tree.path(self.broker, self.joins)
        if len(path) == 1 or path[1] != self.leaves:
            raise UsageError(
                f"{self.joins} is not behind {self.leaves}: linked with it,"
                f" {self.broker} and what moves with it would be cut off"
            )
        if len(path) == 2:
            raise UsageError(f"{self.broker} is linked with {self.joins} already")
        old, new = (_link(self.broker, other) for other in (self.leaves, self.joins))
        return topology(tree.brokers, (tree.links - {old}) | {new})


def delta_moves(tree: Topology, delta: int) -> Iterator[DeltaMove]:
    """All that lead to a broker within delta links."""
    for broker in tree.brokers:
        for joins, distance in tree.distances(broker).items():
            if 1 < distance <= delta:
                yield DeltaMove(broker, tree.path(broker, joins)[1], joins)


def _link(one: str, other: str) -> tuple[str, str]:
    return (min(one, other), max(one, other))
