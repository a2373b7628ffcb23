"""Resync in clusters: what brokers exchange when a link comes up or a broker restarts.

    mates       the subscriptions that are sent within the cluster, each its own
    backbone    the names of clients, each also those that came over its other backbone links
    others      nothing
    ResyncDone  behind all that: what was not repeated is withdrawn

The rules are those of a tree (tree/resync.py), with one difference: only links of the backbone wait
for other links of the backbone.  A subscription does not travel further than to the mates, so a
broker has told its mates everything as soon as its own clients had time to reconnect.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from godwit.broker.stimuli import Neighbour
from godwit.overlay.tree.resync import Resync


class ClusterResync(Resync):
    def __init__(
        self,
        neighbours: Iterable[Neighbour],
        expected: Iterable[Neighbour],
        backbone: Container[Neighbour],
    ) -> None:
        """`backbone` are all possible neighbours on the backbone, linked or not."""
        super().__init__(neighbours, expected)
        self._backbone = backbone

    @property
    def has_all(self) -> bool:
        """Whether every neighbour is there, and has sent the subscriptions of its clients."""
        return not self._lacking

    def behind(self, neighbour: Neighbour) -> list[Neighbour]:
        if neighbour not in self._backbone:
            return []
        return [other for other in super().behind(neighbour) if other in self._backbone]
