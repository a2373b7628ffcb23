"""Resync: how two neighbours exchange what they know when a link comes up or a broker restarts.

    a broker restarts            its neighbours --> all advertisements and subscriptions --> broker
    its clients reconnected      the broker --> theirs, and those of its other sides --> neighbours
    ResyncDone                   behind all that: what was not repeated is withdrawn

Until then neighbours keep what they have from the broker, and what they have for it.  A restarted
broker sends NOT_ALL to neighbours that do not remember it: they may have restarted as well.  So it
does to one that restarts meanwhile, which learns by it that clients may remember an earlier run.

A broker has sent a neighbour everything if its clients had time to reconnect, and each of its
other neighbours has sent it everything.  That ends at the leaves of the tree, also when several
brokers restart at the same time.  Subscriptions follow advertisements, so a neighbour has to send
all its advertisements before a broker can say that it has sent all its subscriptions.

A broker that has not sent all its subscriptions does not know all that a subscription covers which
it withdraws.  So that one counts until the end of the resync: what is behind it may come later.

A configured neighbour that has not been there yet counts as one that has sent nothing, so nothing
comes into effect anywhere before the whole network has been up; or a broker has given the
neighbour up.

Departs  The papers have no recovery.  This is the graceful restart of BGP routers.
"""

from __future__ import annotations

from collections.abc import Iterable

from godwit.broker.effects import Send
from godwit.broker.stimuli import Hop, Neighbour
from godwit.content.messages import ResyncDone, ResyncScope

NOT_ALL = ResyncDone(scope=ResyncScope.NOT_ALL)


class Resync:
    """How much each neighbour has sent, and was sent."""

    def __init__(self, neighbours: Iterable[Neighbour], expected: Iterable[Neighbour] = ()) -> None:
        """`neighbours` start together with this broker: there is nothing to exchange.

        Links with those that are `expected` have not been up yet.
        """
        self.clients_are_back = True
        self._said = dict.fromkeys(neighbours, ResyncScope.SUBSCRIPTIONS_TOO)
        self._heard = self._said | dict.fromkeys(expected, ResyncScope.NOT_ALL)
        self._lacking: set[Hop] = set(expected)
        """Neighbours that have not sent all their advertisements."""

    @property
    def is_complete(self) -> bool:
        return all(heard is ResyncScope.SUBSCRIPTIONS_TOO for heard in self._heard.values())

    @property
    def expected(self) -> list[Neighbour]:
        """Neighbours that have not been linked yet."""
        return [neighbour for neighbour in self._heard if neighbour not in self._said]

    def has_advertisements_beside(self, hop: Hop) -> bool:
        """Whether every neighbour other than `hop` has sent all its advertisements."""
        return not self._lacking or self._lacking == {hop}

    def lacks_subscriptions_of(self, hop: Hop) -> bool:
        """Whether this neighbour has not sent all its subscriptions; clients always have."""
        heard = self._heard.get(hop) if isinstance(hop, Neighbour) else None
        return heard is not None and heard is not ResyncScope.SUBSCRIPTIONS_TOO

    def begin(self, neighbour: Neighbour, *, is_recovering: bool = False) -> list[Send]:
        """A neighbour is new, or has restarted.

        A broker that is recovering does not know whether there was an earlier run of it before.
        """
        self._heard[neighbour] = self._said[neighbour] = ResyncScope.NOT_ALL
        self._lacking.add(neighbour)
        return [Send(neighbour, NOT_ALL)] if is_recovering else []

    def end(self, neighbour: Neighbour) -> None:
        """The neighbour is gone, or is not expected any longer."""
        self._heard.pop(neighbour, None)
        self._said.pop(neighbour, None)
        self._lacking.discard(neighbour)

    def begin_all(self) -> list[Send]:
        """The broker restarted: what it sent before was not complete."""
        self.clients_are_back = False
        for neighbour in self._said:
            self._said[neighbour] = ResyncScope.NOT_ALL
        return [Send(neighbour, NOT_ALL) for neighbour in self._said]

    def hear(self, neighbour: Neighbour, scope: ResyncScope) -> None:
        self._heard[neighbour] = scope
        if scope is ResyncScope.NOT_ALL:
            self._lacking.add(neighbour)
        else:
            self._lacking.discard(neighbour)

    def due(self) -> list[Send]:
        """The `ResyncDone` messages that can be sent now."""
        sends: list[Send] = []
        for neighbour, said in self._said.items():
            scope = self._known_for(neighbour)
            if scope > said:
                self._said[neighbour] = scope
                sends.append(Send(neighbour, ResyncDone(scope=scope)))
        return sends

    def behind(self, neighbour: Neighbour) -> list[Neighbour]:
        """Neighbours whose tables are sent on to this one."""
        return [other for other in self._heard if other != neighbour]

    def _known_for(self, neighbour: Neighbour) -> ResyncScope:
        if not self.clients_are_back:
            return ResyncScope.NOT_ALL
        others = (self._heard[other] for other in self.behind(neighbour))
        known = min(others, default=ResyncScope.SUBSCRIPTIONS_TOO)
        if self._heard[neighbour] is ResyncScope.NOT_ALL:
            return min(known, ResyncScope.ADVERTISEMENTS)
        return known
