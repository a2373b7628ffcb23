"""What can be seen of a router that holds one routing, or two during a change.

What others read is that of the epoch in use; a link belongs to the epoch of its lane.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from godwit.broker.routing import Holding, Routing, Structured, Tables
from godwit.broker.stimuli import Hop, LinkKind, Neighbour
from godwit.content.link_messages import NetworkShape
from godwit.content.messages import AdvertisementId, Sweep


class EpochViews:
    in_use: Routing
    """Of the epoch that publications of local clients travel in."""

    def __init__(self, now: Routing, lane: int) -> None:
        self._now = now
        self._lane = lane
        self._next: Routing | None = None
        self._shape: NetworkShape | None = None
        """Of the next epoch."""

    def routings(self) -> list[Routing]:
        """That of the present epoch, and that of the next one."""
        return [self._now] if self._next is None else [self._now, self._next]

    def routing_of(self, neighbour: Neighbour) -> Routing | None:
        """The routing of a link; None if its epoch is over."""
        if neighbour.lane == self._lane:
            return self._now
        if self._shape is not None and neighbour.lane == self._shape.epoch:
            return self._next
        return None

    def is_structured(self, lane: int) -> bool:
        return isinstance(self.routing_of(Neighbour("", lane)), Structured)

    def kind_of(self, neighbour: Neighbour) -> LinkKind | None:
        routing = self.routing_of(neighbour)
        return None if routing is None else routing.neighbours.get(neighbour)

    def why_not(self, neighbour: Neighbour) -> str | None:
        routing = self.routing_of(neighbour)
        return routing.why_not_linked(neighbour.name) if isinstance(routing, Structured) else None

    def sources(self, neighbour: Neighbour) -> Collection[Neighbour]:
        routing = self.routing_of(neighbour)
        return () if routing is None else routing.sources(neighbour)

    @property
    def neighbours(self) -> Mapping[Neighbour, LinkKind]:
        return self.in_use.neighbours

    @property
    def subscription_count(self) -> int:
        return self.in_use.subscription_count

    @property
    def advertisement_count(self) -> int:
        return self.in_use.advertisement_count

    def tables(self) -> Tables:
        return self.in_use.tables()

    def holdings(self) -> Iterable[Holding]:
        return self.in_use.holdings()

    def publisher(self, advertisement: AdvertisementId) -> Hop | None:
        return self._now.publisher(advertisement)

    @property
    def sweeps(self) -> Sequence[Sweep]:
        return self._now.sweeps

    def check(self) -> None:
        for routing in self.routings():
            routing.check()
