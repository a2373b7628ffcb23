"""Who has told whom all it knows: how a broker that failed learns its part again.

    a broker is back             its neighbours --> all advertisements, all subscriptions --> broker
    its clients are back too     the broker --> theirs, and those of its other sides --> neighbours
    Told                         behind all that: what a neighbour remembers beyond it is forgotten

Until then neighbours keep what they remember of the broker, and what they have for it.  A broker
that is back says so to neighbours that do not remember it: they may have failed as well, and have
nobody else who could tell them.

A broker has told a neighbour everything if its clients had time to come back, and each of its
other neighbours has told it everything.  That ends at the leaves of the tree, also when several
brokers are back at the same time.  Subscriptions go where advertisements lead, so a neighbour has
to tell all its advertisements before a broker can say that it has told all its subscriptions.

Departs  The papers have no recovery.  Routers that restart gracefully do it like this (BGP).
"""

from __future__ import annotations

from collections.abc import Iterable

from godwit.broker.effects import Send
from godwit.broker.stimuli import Neighbour
from godwit.content.messages import Telling, Told

NOT_ALL = Told(telling=Telling.NOT_ALL)


class Tellings:
    def __init__(self, neighbours: Iterable[Neighbour]) -> None:
        """These neighbours start with us: there is nothing to tell."""
        self.clients_are_back = True
        self._heard = dict.fromkeys(neighbours, Telling.SUBSCRIPTIONS_TOO)
        self._said = dict(self._heard)

    @property
    def is_complete(self) -> bool:
        return all(heard is Telling.SUBSCRIPTIONS_TOO for heard in self._heard.values())

    def begin(self, neighbour: Neighbour) -> None:
        self._heard[neighbour] = self._said[neighbour] = Telling.NOT_ALL

    def end(self, neighbour: Neighbour) -> None:
        del self._heard[neighbour], self._said[neighbour]

    def begin_all(self) -> list[Send]:
        """We have failed: what we said to be all was not."""
        self.clients_are_back = False
        for neighbour in self._said:
            self._said[neighbour] = Telling.NOT_ALL
        return [Send(neighbour, NOT_ALL) for neighbour in self._said]

    def hear(self, neighbour: Neighbour, telling: Telling) -> None:
        self._heard[neighbour] = telling

    def due(self) -> list[Send]:
        """What can be said now."""
        sends: list[Send] = []
        for neighbour, said in self._said.items():
            telling = self._known_for(neighbour)
            if telling > said:
                self._said[neighbour] = telling
                sends.append(Send(neighbour, Told(telling=telling)))
        return sends

    def _known_for(self, neighbour: Neighbour) -> Telling:
        if not self.clients_are_back:
            return Telling.NOT_ALL
        others = [heard for other, heard in self._heard.items() if other != neighbour]
        known = min(others, default=Telling.SUBSCRIPTIONS_TOO)
        if self._heard[neighbour] is Telling.NOT_ALL:
            return min(known, Telling.ADVERTISEMENTS)
        return known
