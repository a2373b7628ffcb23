"""Flushing: how a broker learns that what it has sent is where it belongs.

    flush      goes over every link that publications of this broker may take, behind them
    flushed    comes back when the receiver has handled it, and all whom it passes publications on
               to have answered

It is an echo: each broker waits for those behind it.  Waiting has no cycle, because publications
go from handovers to rings, from there to handovers within the cluster, and end with the mates.

Ours; the paper does not say how publications keep their order when their route changes.

H1  A flush that this broker has begun or passed on ends once: when all that were asked have
    answered, or their links are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeAlias

from godwit.broker.effects import Send
from godwit.broker.routing import Answer
from godwit.broker.stimuli import Neighbour
from godwit.content.messages import ClusterNotice, ClusterStep

#: What is done when a flush has ended.
Then: TypeAlias = Callable[[], list[Answer]]


@dataclass(slots=True)
class _Flush:
    awaited: set[Neighbour]
    then: Then


class Flushing:
    def __init__(self) -> None:
        self._number = 0
        self._open: dict[int, _Flush] = {}

    def begin(self, ways: Collection[Neighbour], then: Then) -> list[Answer]:
        """Ask over these links; `then` is called when all have answered."""
        if not ways:
            return then()
        self._number += 1
        self._open[self._number] = _Flush(set(ways), then)
        flush = ClusterNotice(step=ClusterStep.FLUSH, number=self._number)
        return [Send(way, flush) for way in ways]

    def pass_on(
        self, number: int, last_hop: Neighbour, ways: Collection[Neighbour]
    ) -> list[Answer]:
        """Another broker asks: ask those behind this one, then answer."""
        flushed = ClusterNotice(step=ClusterStep.FLUSHED, number=number)
        return self.begin(ways, lambda: [Send(last_hop, flushed)])

    def flushed(self, number: int, by: Neighbour) -> list[Answer]:
        found = self._open.get(number)
        if found is None or by not in found.awaited:
            return []
        return self._await_no_longer(number, found, by)

    def link_down(self, neighbour: Neighbour) -> list[Answer]:
        """Do not wait for what is behind this link."""
        waiting = [(n, each) for n, each in self._open.items() if neighbour in each.awaited]
        answers: list[Answer] = []
        for number, found in waiting:
            answers += self._await_no_longer(number, found, neighbour)
        return answers

    def _await_no_longer(self, number: int, found: _Flush, by: Neighbour) -> list[Answer]:
        found.awaited.remove(by)
        if found.awaited:
            return []
        del self._open[number]  # H1
        return found.then()
