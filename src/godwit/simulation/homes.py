"""A simulated client's connection to one broker.  While it moves it has two."""

from __future__ import annotations

from collections.abc import Callable

from godwit.broker.stimuli import Client, Received
from godwit.content.messages import Message, Notice, Publication
from godwit.simulation.agenda import Agenda
from godwit.simulation.node import SimulatedBroker, Wire


class Home:
    def __init__(self, client: Client, node: SimulatedBroker, uplink: Wire, agenda: Agenda) -> None:
        self._client = client
        self._node = node
        self._uplink = uplink
        self._agenda = agenda

    @property
    def broker(self) -> str:
        return self._node.name

    def send(self, message: Message) -> None:
        now_s = self._agenda.now_s
        received = Received(message, self._client)
        self._agenda.plan(self._uplink.arrival_s(now_s), self._node.arrive, received, now_s)

    def listen(
        self,
        to_notices: Callable[[Notice], None],
        to_publications: Callable[[Publication, int], None] | None = None,
    ) -> None:
        """Publications go to the observers, of many clients at a time, unless said otherwise."""
        self._node.clients[self._client] = to_notices
        if to_publications is None:
            self._node.movers.pop(self._client, None)
        else:
            self._node.movers[self._client] = to_publications

    def leave(self) -> None:
        """Hear nothing any more of what may still come."""
        self.listen(lambda _notice: None, lambda _publication, _hops: None)
