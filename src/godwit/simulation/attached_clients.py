"""The clients of a simulated broker: what arrives for them goes to them, or to the observers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from godwit.broker.effects import Deliver, Notify
from godwit.broker.stimuli import LocalClient
from godwit.client.deliveries import DeliveryMarks
from godwit.content.messages import Notice, Publication
from godwit.simulation.agenda import Agenda
from godwit.simulation.last_delivered import LastDelivered
from godwit.simulation.observers import Observer


class AttachedClients:
    """`answer`, `deliver` and `deliver_group` are planned as arrivals."""

    __slots__ = (
        "_agenda", "_departing", "_marks", "_movers", "_observer", "_on_notice", "last_delivered",
    )  # fmt: skip

    def __init__(self, agenda: Agenda, observer: Observer) -> None:
        self._agenda = agenda
        self._observer = observer
        self._on_notice: dict[LocalClient, Callable[[Notice], None]] = {}
        self._movers: dict[LocalClient, Callable[[Publication, int], None]] = {}
        """Clients that move: each takes its publications by itself."""
        self._marks: dict[LocalClient, DeliveryMarks] = {}
        """Clients that have moved here: each publication is checked for duplicates."""
        self._departing: set[LocalClient] = set()
        self.last_delivered = LastDelivered()

    def __len__(self) -> int:
        return len(self._on_notice)

    def __iter__(self) -> Iterator[LocalClient]:
        return iter(self._on_notice)

    def attach(
        self,
        client: LocalClient,
        on_notice: Callable[[Notice], None],
        on_publication: Callable[[Publication, int], None] | None,
        marks: DeliveryMarks | None = None,
    ) -> None:
        """Without `on_publication`, publications go to the observers, many clients at a time.

        Those that are not new by the client's `marks` do not.
        """
        self._departing.discard(client)
        self._on_notice[client] = on_notice
        self._movers.pop(client, None)
        self._marks.pop(client, None)
        if on_publication is not None:
            self._movers[client] = on_publication
        if marks is not None:
            self._marks[client] = marks

    def depart(self, client: LocalClient) -> None:
        """Deliver nothing more to a client; its session ends with `ClientLeft`."""
        self.attach(client, _ignore, _ignore)
        self._departing.add(client)

    def has_left(self, client: LocalClient) -> bool:
        """The session of a client ends; False if the client has come back."""
        if client not in self._departing:
            return False
        self._departing.remove(client)
        del self._on_notice[client]  # Not of movers: copies may still be queued for it.
        return True

    def answer(self, notify: Notify, _departed_s: float) -> None:
        on_notice = self._on_notice.get(notify.to)
        if on_notice is not None:  # Else the client has left.
            on_notice(notify.notice)

    def deliver_group(self, some: Deliver, _departed_s: float) -> None:
        """Copies of a publication arrive, and others follow."""
        self.last_delivered.add_group(some)
        self._hand_over(some)

    def deliver(self, deliver: Deliver, _departed_s: float) -> None:
        """The copies of a publication arrive, or the last of them."""
        publication = deliver.publication
        self.last_delivered.sequences[publication.publisher] = publication.sequence
        self._hand_over(deliver)

    def _hand_over(self, deliver: Deliver) -> None:
        publication, movers, marks = deliver.publication, self._movers, self._marks
        if movers or marks:
            names = []
            for client in deliver.to:
                if client in movers:
                    movers[client](publication, deliver.hops)
                elif client not in marks or marks[client].is_new(publication):
                    names.append(client.name)
        else:
            names = [client.name for client in deliver.to]
        if names:
            self._observer.on_delivered(names, publication, deliver.hops, self._agenda.now_s)


def _ignore(*_what: object) -> None:
    """What still comes for a client that has left."""
