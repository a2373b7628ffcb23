"""What one broker knows of the links of all brokers.  Pure.

A broker floods the state of its links whenever it changes, and passes on what others flood: the
higher version of a state replaces the lower one, so flooding ends in every graph.  A new neighbour
is sent all that is known.

A broker that has restarted counts its versions from the beginning.  A neighbour that has a higher
one of an earlier run sends it back, and the broker goes on above it: no clock is needed.

L1  Of two states of a broker the one with the higher version counts.
L2  Only brokers that are reached over links count: states of those that have left are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from godwit.content.link_messages import (
    LinkEnd,
    LinkMessage,
    LinkState,
    LinkStatus,
    MissingBroker,
)

#: Messages to send, each with the name of the neighbour.
Letters: TypeAlias = list[tuple[str, LinkMessage]]

#: The links of these kinds have a stream, on which messages arrive sooner or later.
LINKED = frozenset({LinkStatus.UP, LinkStatus.AWAY})


class LinkStates:
    def __init__(self, broker: str, expected: Iterable[str] = ()) -> None:
        """`expected` are the names or addresses of configured neighbours."""
        self.broker = broker
        self._own = dict.fromkeys(expected, LinkStatus.EXPECTED)
        self._version = 0
        self._others: dict[str, LinkState] = {}

    @property
    def own(self) -> LinkState:
        links = tuple(LinkEnd(name, status) for name, status in self._own.items())
        return LinkState(broker=self.broker, version=self._version, links=links)

    @property
    def expected(self) -> list[str]:
        """Configured links that have not been up."""
        return [name for name, status in self._own.items() if status is LinkStatus.EXPECTED]

    # -- own links -----------------------------------------------------------------------------

    def set(self, neighbour: str, status: LinkStatus) -> Letters:
        """The status of a link has changed."""
        if self._own.get(neighbour) is status:
            return []
        self._own[neighbour] = status
        return self._changed()

    def link(self, neighbour: str) -> Letters:
        """The neighbour is connected and knows nothing: send it everything."""
        there = list(self._walk())
        self._own[neighbour] = LinkStatus.UP
        changed = self._changed()  # For the neighbour as well.
        known = [self._others[broker] for broker in there if broker in self._others]
        return changed + [(neighbour, state) for state in known]

    def forget(self, neighbour: str) -> Letters:
        """There is no such link any more, and none is expected."""
        return [] if self._own.pop(neighbour, None) is None else self._changed()

    def _changed(self) -> Letters:
        self._version += 1
        return self._flood(self.own, None)

    # -- the links of others -------------------------------------------------------------------

    def receive(self, state: LinkState, source: str) -> Letters:
        if state.broker == self.broker:
            if state.version < self._version or state == self.own:
                return []
            self._version = state.version  # Of an earlier run.
            return self._changed()
        known = self._others.get(state.broker)
        if known is None or state.version > known.version:  # L1
            self._others[state.broker] = state
            return self._flood(state, source)
        # It has restarted, and counts from the beginning: it will go on above what is known.
        return [] if state == known else [(source, known)]

    def _flood(self, state: LinkState, source: str | None) -> Letters:
        linked = [name for name, status in self._own.items() if status in LINKED]
        return [(name, state) for name in linked if name != source]

    # -- the network ---------------------------------------------------------------------------

    def missing(self) -> list[MissingBroker]:
        """Brokers that are configured and not there, the nearest first."""
        there = list(self._walk())
        found = {
            link.neighbour: MissingBroker(link.neighbour, broker)
            for broker in reversed(there)
            for link in self._links(broker)
            if link.status is not LinkStatus.UP and link.neighbour not in there
        }
        return sorted(found.values(), key=lambda each: (there.index(each.behind), each.name))

    def _walk(self) -> Iterator[str]:
        """The brokers that are reached over links that are up, breadth first (L2)."""
        reached = {self.broker: None}
        frontier = [self.broker]
        for broker in frontier:  # Grows while it is walked.
            yield broker
            for neighbour, status in self._links(broker):
                if status is LinkStatus.UP and neighbour not in reached:
                    reached[neighbour] = None
                    frontier.append(neighbour)

    def _links(self, broker: str) -> tuple[LinkEnd, ...]:
        if broker == self.broker:
            return self.own.links
        state = self._others.get(broker)
        return () if state is None else state.links
