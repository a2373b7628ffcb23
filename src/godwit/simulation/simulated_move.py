"""Moves of a simulated client: the state machine of migration/move.py between its two homes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from math import inf
from typing import TYPE_CHECKING, assert_never

from godwit.client.deliveries import DeliveryMarks
from godwit.content.messages import Advertisement, Notice, Publication, Refusal
from godwit.migration.move import Hand, Move, Order, Phase, ToNew, ToOld
from godwit.simulation.agenda import Agenda
from godwit.simulation.homes import Home
from godwit.simulation.observers import Observer

if TYPE_CHECKING:
    from godwit.simulation.simulated_client import SimulatedClient


class SimulatedMover:
    def __init__(
        self,
        client: SimulatedClient,
        find_home: Callable[[str, str], Home],
        observer: Observer,
        agenda: Agenda,
    ) -> None:
        self.moves = 0
        self._client = client
        self._find_home = find_home
        self._observer = observer
        self._agenda = agenda
        self._move: Move | None = None
        self._new: Home | None = None
        self._session = ""
        self._began_s = 0.0
        self._paused_s: float | None = None
        """When publications of the client began to wait."""
        self._deliveries: DeliveryMarks | None = None
        """Kept from the first move on, to save time for clients that never move; until then the
        broker has the marks."""

    @property
    def is_moving(self) -> bool:
        return self._move is not None

    def start(self, to: str, within_s: float = inf, session: str = "") -> None:
        client = self._client
        if to == client.home.broker or client.has_left:
            return
        new = self._find_home(client.name, to)
        if not new.is_up:
            return  # An unreachable broker: the client stays.
        self.moves += 1
        if self._deliveries is None:
            self._deliveries = DeliveryMarks(client.name, client.home.last_delivered)
        self._session = session
        self._began_s = self._agenda.now_s
        move = self._move = client.requests.plan_move(client.home.broker)
        self._new = new
        client.home.listen(self._on_old, partial(self._carry_out_with, move.publication_from_old))
        new.listen(self._on_new, partial(self._carry_out_with, move.publication_from_new))
        if within_s != inf:
            self._agenda.plan(self._agenda.now_s + within_s, self._on_time_out, move, within_s)
        self._carry_out(move.start())

    def _on_time_out(self, move: Move, within_s: float) -> None:
        if self._move is not move or self._new is None:
            return
        orders = move.on_time_out(
            old_is_connected=self._client.home.is_up, new_is_connected=self._new.is_up
        )
        self._carry_out(orders)
        if not move.is_over:
            self._agenda.plan(self._agenda.now_s + within_s, self._on_time_out, move, within_s)

    def _on_old(self, notice: Notice) -> None:
        assert self._move is not None
        self._client.receive(notice)
        self._carry_out(self._move.on_old(notice))

    def _on_new(self, notice: Notice) -> None:
        assert self._move is not None
        if isinstance(notice, Refusal):
            self._client.receive(notice)
        self._carry_out(self._move.on_new(notice))

    def _carry_out_with(
        self, take: Callable[[Publication, int], list[Order]], publication: Publication, hops: int
    ) -> None:
        self._carry_out(take(publication, hops))

    def _carry_out(self, orders: Iterable[Order]) -> None:
        client, move, new = self._client, self._move, self._new
        assert move is not None
        assert new is not None
        for order in orders:
            match order:
                case ToOld(message=message):
                    if isinstance(message, Advertisement):  # Returning, with the next edition.
                        client.holdings.advertise_again(message)
                    client.home.send(message)
                case ToNew(message=message):
                    new.send(message)
                case Hand(publication=publication, hops=hops):
                    self._take(publication, hops)
                case _:
                    assert_never(order)
        client.held.is_paused = move.holds_publications
        if move.holds_publications and self._paused_s is None:
            self._paused_s = self._agenda.now_s
        if move.is_over:
            self._finish(move, new)

    def _finish(self, move: Move, new: Home) -> None:
        client, now_s = self._client, self._agenda.now_s
        paused_s = 0.0 if self._paused_s is None else now_s - self._paused_s
        self._move = self._new = self._paused_s = None
        if move.phase is Phase.MOVED:
            old = client.home
            took_s = now_s - self._began_s
            self._observer.on_moved(client.name, old.broker, new.broker, took_s, paused_s, now_s)
            client.requests.arrive(move)
            client.home = new
            old.leave()
            new.arrive(old.broker, self._session)
            for subscription in move.subscriptions.values():
                client.on_subscription_in_effect(client.holdings.known_as(subscription.id))
        else:
            new.leave()
        client.home.listen(client.receive, marks=self._deliveries)
        client.on_settled()

    def _take(self, publication: Publication, hops: int) -> None:
        """Deliver a publication, unless it is a duplicate or the client's own (M2)."""
        assert self._deliveries is not None
        if self._deliveries.is_new(publication):
            now_s = self._agenda.now_s
            self._observer.on_delivered([self._client.name], publication, hops, now_s)
