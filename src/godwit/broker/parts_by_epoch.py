"""What is missing in each epoch: during a change of its shape, a network has two.

Clients are told of gaps in the epoch in use.  When it ends, its gaps end with it: nothing travels
there any more.
"""

from __future__ import annotations

from collections.abc import Sequence

from godwit.broker.effects import Effect
from godwit.broker.parts import Parts, parts_of
from godwit.broker.routing import Reshapable, Routing
from godwit.broker.stimuli import Neighbour


class PartsByEpoch:
    def __init__(self, broker: str, routing: Routing, lane: int) -> None:
        """`lane` is that of the epoch in use."""
        self._broker = broker
        self._routing = routing
        self._lane = lane
        self.in_use = parts_of(broker, routing)
        self._others: dict[int, Parts] = {}

    def of(self, neighbour: Neighbour) -> Parts:
        """Those of the epoch of a link."""
        if neighbour.lane == self._lane:
            return self.in_use
        parts = self._others.get(neighbour.lane)
        if parts is None:
            routing = self._routing
            assert isinstance(routing, Reshapable), "there is one epoch"
            parts = Parts(
                self._broker,
                cross_links=() if routing.is_structured(neighbour.lane) else None,
                tables_are_complete=lambda: routing.is_complete,
            )
            self._others[neighbour.lane] = parts
        return parts

    def drop(self, lane: int, used: int) -> Sequence[Effect]:
        """An epoch is over, and the one on the lane `used` is in use."""
        if lane != self._lane:
            self._others.pop(lane, None)
            return []
        old = self.in_use
        self.in_use = self.of(Neighbour(self._broker, used))
        self._others.pop(used, None)
        self._lane = used
        return old.end_all()
