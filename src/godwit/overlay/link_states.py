"""What one broker knows of the links of all brokers.  Pure.

A broker floods the state of its links whenever it changes, and passes on what others flood: the
higher version of a state replaces the lower one, so flooding ends in every graph.  A new neighbour
is sent all that is known.

A broker that has restarted counts its versions from the beginning.  A neighbour that has a higher
one of an earlier run sends it back, and the broker goes on above it: no clock is needed.

L1  Of two states of a broker the one with the higher version counts; of two with the same one, of
    different runs, the greater one, whichever that is: all brokers take the same.
L2  Only brokers that are reached over links count: states of those that have left are ignored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeAlias

from godwit.content.link_messages import (
    LinkEnd,
    LinkMessage,
    LinkState,
    LinkStatus,
    LinkWave,
    MissingBroker,
)

#: Messages to send, each with the name of the neighbour.
Letters: TypeAlias = list[tuple[str, LinkMessage]]
#: Two brokers, in alphabetical order.
Pair: TypeAlias = tuple[str, str]

#: Links with a stream, on which messages arrive sooner or later.
LINKED = frozenset({LinkStatus.UP, LinkStatus.AWAY, LinkStatus.PENDING})
#: Links that a new one must not close a cycle with, whatever becomes of pending ones.
FIRM = frozenset({LinkStatus.UP, LinkStatus.AWAY, LinkStatus.EXPECTED})
UP_ONLY = frozenset({LinkStatus.UP})


class LinkStates:
    def __init__(self, broker: str, expected: Iterable[str] = ()) -> None:
        """`expected` are the names or addresses of configured neighbours."""
        self.broker = broker
        self.turn = 0
        """The highest turn that this broker knows of: a logical clock."""
        self._own = {name: LinkEnd(name, LinkStatus.EXPECTED) for name in expected}
        self._version = 0
        self._others: dict[str, LinkState] = {}

    @property
    def own(self) -> LinkState:
        links = tuple(self._own.values())
        return LinkState(broker=self.broker, version=self._version, links=links)

    @property
    def expected(self) -> list[str]:
        """Neighbours that are configured by name, and have not been linked."""
        return [
            name
            for name, end in self._own.items()
            if end.status is LinkStatus.EXPECTED and _is_firm(end)
        ]

    @property
    def linked(self) -> list[str]:
        """Neighbours that are connected, or may come back."""
        return [name for name, end in self._own.items() if end.status in LINKED]

    def status(self, neighbour: str) -> LinkStatus | None:
        end = self._own.get(neighbour)
        return None if end is None else end.status

    def is_alone_with(self, neighbour: str) -> bool:
        """Whether this broker has no other link that counts: one with it closes no cycle."""
        others = (end for name, end in self._own.items() if name != neighbour)
        return not any(end.status in LINKED or _is_firm(end) for end in others)

    # -- own links -----------------------------------------------------------------------------

    def set(self, neighbour: str, status: LinkStatus) -> Letters:
        """The status of a link has changed."""
        if self.status(neighbour) is status:
            return []
        self._own[neighbour] = LinkEnd(neighbour, status)
        return self._changed()

    def link(self, neighbour: str, turn: int = 0) -> Letters:
        """A neighbour that knows nothing is connected: send it everything.

        With a `turn` the link is pending.
        """
        known = [self._others[name] for name in self._reached(LINKED) if name in self._others]
        status = LinkStatus.PENDING if turn else LinkStatus.UP
        self._own[neighbour] = LinkEnd(neighbour, status, turn)
        self.turn = max(self.turn, turn)
        changed = self._changed()  # For the neighbour as well.
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
        if known is None or _rank(state) > _rank(known):  # L1
            self._others[state.broker] = state
            self.turn = max([self.turn, *(link.turn for link in state.links)])
            return self._flood(state, source)
        # It has restarted, and counts from the beginning: it will go on above what is known.
        return [] if state == known else [(source, known)]

    def on_wave(self, wave: LinkWave) -> None:
        self.turn = max(self.turn, wave.turn)

    def _flood(self, state: LinkState, source: str | None) -> Letters:
        return [(name, state) for name in self.linked if name != source]

    # -- the network ---------------------------------------------------------------------------

    def there(self) -> Collection[str]:
        """The brokers that are reached over links that are up."""
        return self._reached(UP_ONLY)

    def missing(self) -> list[MissingBroker]:
        """Brokers that are configured and not there, the nearest first."""
        there = self.there()
        found: dict[str, MissingBroker] = {}
        for broker in there:
            for end in sorted(self._links(broker)):
                is_lacking = end.status not in (LinkStatus.UP, LinkStatus.PENDING)
                if is_lacking and end.neighbour not in there:
                    found.setdefault(end.neighbour, MissingBroker(end.neighbour, broker))
        return list(found.values())

    def turn_of(self, neighbour: str) -> int:
        """The turn of an own pending link: the higher one of those that its ends state."""
        ends = (*self._links(self.broker), *self._links(neighbour))
        here = {self.broker, neighbour}
        return max(end.turn for end in ends if end.neighbour in here)

    def way(self, to: str, turn: int = 0) -> list[str]:
        """The brokers on a way to another broker, beside a link with it; empty if there is none.

        It leads over links that are there or expected, and over pending ones with lower turns.
        """
        limit = (turn, *_pair(self.broker, to))
        firm: set[Pair] = set()
        pending: dict[Pair, int] = {}
        for broker in self._reached(LINKED):  # L2
            for end in self._links(broker):
                pair = _pair(broker, end.neighbour)
                if _is_firm(end):
                    firm.add(pair)
                elif end.status is LinkStatus.PENDING:
                    pending[pair] = max(end.turn, pending.get(pair, 0))
        firm |= {pair for pair, its_turn in pending.items() if (its_turn, *pair) < limit}
        return _path(firm - {_pair(self.broker, to)}, self.broker, to)

    def _reached(self, statuses: frozenset[LinkStatus]) -> dict[str, None]:
        """The brokers that are reached over such links, breadth first."""
        reached = {self.broker: None}
        frontier = [self.broker]
        for broker in frontier:  # Grows while it is walked.
            for end in self._links(broker):
                if end.status in statuses and end.neighbour not in reached:
                    reached[end.neighbour] = None
                    frontier.append(end.neighbour)
        return reached

    def _links(self, broker: str) -> tuple[LinkEnd, ...]:
        if broker == self.broker:
            return tuple(self._own.values())
        state = self._others.get(broker)
        return () if state is None else state.links


def _rank(state: LinkState) -> tuple[int, tuple[LinkEnd, ...]]:
    return state.version, state.links


def _is_firm(end: LinkEnd) -> bool:
    # What an address leads to is not known.
    return end.status in FIRM and "://" not in end.neighbour


def _pair(a: str, b: str) -> Pair:
    return (a, b) if a < b else (b, a)


def _path(links: set[Pair], source: str, target: str) -> list[str]:
    """A shortest path, both ends included; empty if there is none."""
    neighbours: dict[str, list[str]] = {}
    for a, b in sorted(links):
        neighbours.setdefault(a, []).append(b)
        neighbours.setdefault(b, []).append(a)
    before = {source: source}
    frontier = [source]
    for broker in frontier:  # Grows while it is walked.
        for neighbour in neighbours.get(broker, ()):
            if neighbour not in before:
                before[neighbour] = broker
                frontier.append(neighbour)
    if target not in before:
        return []
    way = [target]
    while way[-1] != source:
        way.append(before[way[-1]])
    return way[::-1]
