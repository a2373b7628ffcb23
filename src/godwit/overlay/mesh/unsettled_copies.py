"""Copies of publications that are not settled: on their way, as far as this broker knows.

A copy is settled when the neighbour has acknowledged it, which it does when all brokers and clients
behind it have (broker/pending_acks.py).  While a publisher has a copy with one neighbour, what it
publishes next must not overtake that on another path: forwarding.py decides by what is here.

Copies of a neighbour are counted from 1, as the driver counts what it is sent (Acknowledged):
normal publications, and sweeps.

U1  The answered copies of a neighbour are the first ones.
U2  A publisher that is not here has no unsettled copy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

from godwit.broker.stimuli import Neighbour

#: How many copies each neighbour had at some time.
Positions: TypeAlias = dict[Neighbour, int]

#: Publishers that are kept before those without unsettled copies are forgotten.
PUBLISHERS_KEPT = 1_024
_NONE: Mapping[Neighbour, int] = {}


class UnsettledCopies:
    def __init__(self) -> None:
        self._put: dict[Neighbour, int] = {}
        self._answered: dict[Neighbour, int] = {}
        self._unanswered = 0
        """Of all neighbours together."""
        self._by_publisher: dict[str, dict[Neighbour, int]] = {}
        """The position of the last copy that each neighbour was sent."""
        self._kept = PUBLISHERS_KEPT

    def count(self, neighbour: Neighbour) -> None:
        """The neighbour is sent something that it will acknowledge."""
        self._put[neighbour] = self._put.get(neighbour, 0) + 1
        self._unanswered += 1

    def send(self, publisher: str, neighbours: Collection[Neighbour]) -> None:
        """Copies of a publication go to these."""
        copies = self._by_publisher.get(publisher)
        if copies is None:
            if len(self._by_publisher) >= self._kept:
                self._forget_settled()
            copies = self._by_publisher[publisher] = {}
        put = self._put
        for neighbour in neighbours:
            put[neighbour] = copies[neighbour] = put.get(neighbour, 0) + 1
        self._unanswered += len(neighbours)

    def _forget_settled(self) -> None:
        for publisher in list(self._by_publisher):
            if not self.of(publisher):
                del self._by_publisher[publisher]
        self._kept = max(PUBLISHERS_KEPT, 2 * len(self._by_publisher))

    def acknowledge(self, neighbour: Neighbour, position: int) -> None:
        before = self._answered.get(neighbour, 0)
        position = min(position, self._put.get(neighbour, 0))
        if position <= before:
            return
        self._answered[neighbour] = position
        self._unanswered -= position - before
        if not self._unanswered:
            self._by_publisher.clear()

    def close(self, neighbour: Neighbour) -> None:
        """The link is gone; what was not acknowledged is lost, or sent another way."""
        self._unanswered -= self._put.pop(neighbour, 0) - self._answered.pop(neighbour, 0)
        for copies in self._by_publisher.values():
            copies.pop(neighbour, None)

    def of(self, publisher: str) -> Mapping[Neighbour, int]:
        """The neighbours that have unsettled copies of this publisher."""
        copies = self._by_publisher.get(publisher)
        if not copies:
            return _NONE
        answered = self._answered
        settled = [to for to, position in copies.items() if position <= answered.get(to, 0)]
        for to in settled:
            del copies[to]
        return copies

    def is_idle(self, neighbour: Neighbour) -> bool:
        return self._put.get(neighbour, 0) <= self._answered.get(neighbour, 0)

    def positions(self) -> Positions:
        """What every neighbour has to acknowledge until all that was sent so far is settled."""
        return {to: put for to, put in self._put.items() if put > self._answered.get(to, 0)}

    def has_settled(self, positions: Positions) -> bool:
        """Whether all these are settled; those of links that are gone count as settled."""
        answered = self._answered
        return all(
            to not in self._put or answered.get(to, 0) >= put for to, put in positions.items()
        )
