"""A simulated client's connection to one broker.  A client that moves has two."""

from __future__ import annotations

from collections.abc import Callable

from godwit.broker.stimuli import ClientArrived, ClientLeft, LocalClient, Received
from godwit.client.deliveries import DeliveryMarks
from godwit.content.messages import Message, Notice, Publication
from godwit.simulation.agenda import Agenda
from godwit.simulation.simulated_broker import SimulatedBroker
from godwit.simulation.wires import Wire


class Home:
    def __init__(
        self, client: LocalClient, node: SimulatedBroker, uplink: Wire, agenda: Agenda
    ) -> None:
        self._client = client
        self._node = node
        self._uplink = uplink
        self._agenda = agenda

    @property
    def broker(self) -> str:
        return self._node.name

    @property
    def is_up(self) -> bool:
        """Whether the broker is up."""
        return self._node.is_up

    @property
    def last_delivered(self) -> dict[str, int]:
        """By publisher, the sequence number up to which the client has all that it is owed."""
        return self._node.clients.last_delivered.of(self._client)

    def send(self, message: Message) -> None:
        now_s = self._agenda.now_s
        received = Received(message, self._client)
        arrives_s = self._uplink.arrival_s(now_s)
        self._agenda.plan_arrival(arrives_s, self._node.arrive, received, now_s)

    def listen(
        self,
        on_notice: Callable[[Notice], None],
        on_publication: Callable[[Publication, int], None] | None = None,
        marks: DeliveryMarks | None = None,
    ) -> None:
        self._node.clients.attach(self._client, on_notice, on_publication, marks)

    def arrive(self, source: str, session: str) -> None:
        """The client has completed its move from `source` to this broker."""
        arrived = ClientArrived(self._client, source, session)
        at_s = self._uplink.end_s(self._agenda.now_s)
        self._agenda.plan(at_s, self._node.arrive_in_order, arrived)

    def leave(self) -> None:
        """Ignore what still comes, and end the session behind everything that was sent."""
        self._node.clients.depart(self._client)
        at_s = self._uplink.end_s(self._agenda.now_s)
        self._agenda.plan(at_s, self._node.arrive_in_order, ClientLeft(self._client))
