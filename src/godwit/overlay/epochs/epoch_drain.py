"""How the old epoch ends at a broker, link by link (E1, E2 in epoch_routing.py).

`Last` on a link says that no publication follows on it.  A broker can say so when it has flipped
and Last has come over all links whose publications it might pass on there:

    tree       all its other links: a convergecast, 2 messages for each link
    clusters   with a broker of another cluster none, so at once; with a mate all those with other
               clusters.  Publications go from rings to clusters and never back, and so does Last
    mesh       as a tree, on the primary links; and its own soft links are not used any more

A soft link has no Last.  This broker gives them all up when it flips, and ends its use of each when
all that it has sent there is acknowledged, which it is when all brokers and clients behind have it.
So what was on soft links has arrived when Last goes on over the primary ones.
"""

from __future__ import annotations

from collections.abc import Collection

from godwit.broker.routing import Multipath, Routing
from godwit.broker.stimuli import LinkKind, Neighbour


class EpochDrain:
    def __init__(self) -> None:
        self.heard: set[Neighbour] = set()
        """Old neighbours that have sent Last."""
        self.said: set[Neighbour] = set()
        """Old neighbours that were sent Last."""
        self.gone: set[Neighbour] = set()
        """Old neighbours that have dropped the old epoch."""

    def due(self, old: Routing) -> list[Neighbour]:
        """The links that Last is to be sent over now; it counts as sent (E1)."""
        if isinstance(old, Multipath) and old.uses_soft_links:
            return []
        due = [
            link
            for link in sorted(_lasting(old))
            if link not in self.said and self.has_ended(old.sources(link))
        ]
        self.said.update(due)
        return due

    def has_ended(self, links: Collection[Neighbour]) -> bool:
        """Whether Last has come over all these links."""
        return self.heard.issuperset(links)

    def is_over(self, old: Routing) -> bool:
        """Whether Last was sent to all, and has come from all (E2)."""
        links = _lasting(old)
        return self.heard.issuperset(links) and self.said.issuperset(links)


def _lasting(routing: Routing) -> list[Neighbour]:
    """The links that Last goes over."""
    return [link for link, kind in routing.neighbours.items() if kind is not LinkKind.SOFT]
