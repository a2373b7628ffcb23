"""Moves of a simulated client: the real state machine between its two homes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, assert_never

from msgspec.structs import replace

from godwit.content.messages import Notice, Publication, Refusal
from godwit.errors import UsageError
from godwit.migration.moving import Hand, Move, Order, Phase, ToNew, ToOld
from godwit.simulation.agenda import Agenda
from godwit.simulation.homes import Home
from godwit.simulation.observers import Observer

if TYPE_CHECKING:
    from godwit.simulation.clients import SimulatedClient


class Mover:
    def __init__(
        self,
        client: SimulatedClient,
        find_home: Callable[[str, str], Home],
        observer: Observer,
        agenda: Agenda,
        *,
        may_move: bool,
    ) -> None:
        self.moves = 0
        self._may_move = may_move
        self._client = client
        self._find_home = find_home
        self._observer = observer
        self._agenda = agenda
        self._move: Move | None = None
        self._new: Home | None = None
        self._is_renamed = False
        self._began_s = 0.0
        self._paused_s: float | None = None
        """Since when what the client publishes waits."""
        self._last_sequence: dict[str, int] = {}

    @property
    def is_moving(self) -> bool:
        return self._move is not None

    @property
    def holds_publications(self) -> bool:
        return self._move is not None and self._move.holds_publications

    @property
    def may_start(self) -> bool:
        """Could the client move now, if somebody asked it to?"""
        return not self.is_moving and (self._may_move or not self._client.subscriptions)

    def start(self, to: str) -> None:
        client = self._client
        if to == client.home.broker:
            return
        if client.subscriptions and not self._may_move:
            raise UsageError(f"{client.name} has subscriptions and was not made to move")
        self.moves += 1
        self._began_s = self._agenda.now_s
        current = client.subscriptions.values()
        move = self._move = Move(
            self.moves,
            client=client.name,
            source=client.home.broker,
            subscriptions={s.id: replace(s, id=client.new_subscription_id()) for s in current},
            advertisements={
                id: replace(advertisement, edition=advertisement.edition + 1)
                for id, advertisement in client.advertisements.items()
            },
            unconfirmed={id for id in client.advertisements if id not in client.confirmed},
        )
        self._new = new = self._find_home(client.name, to)
        client.home.listen(self._on_old, partial(self._carry_out_with, move.publication_from_old))
        new.listen(self._on_new, partial(self._carry_out_with, move.publication_from_new))
        self._carry_out(move.start())

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
                    client.home.send(message)
                case ToNew(message=message):
                    new.send(message)
                case Hand(publication=publication, hops=hops):
                    self.take(publication, hops)
                case _:
                    assert_never(order)
        if move.holds_publications and self._paused_s is None:
            self._paused_s = self._agenda.now_s
        if move.new_broker_counts and not self._is_renamed:
            self._is_renamed = True
            client.on_renamed(move.subscriptions)
        if move.is_over:
            self._finish(move, new)

    def _finish(self, move: Move, new: Home) -> None:
        client, now_s = self._client, self._agenda.now_s
        paused_s = 0.0 if self._paused_s is None else now_s - self._paused_s
        self._move = self._new = self._paused_s = None
        self._is_renamed = False
        if move.phase is Phase.MOVED:
            places = client.home.broker, new.broker
            took_s = now_s - self._began_s
            self._observer.on_moved(client.name, *places, took_s, paused_s, now_s)
            client.advertisements |= move.advertisements
            client.home.leave()
            client.home = new
        else:
            new.leave()
        client.home.listen(client.receive, self.take if self._may_move else None)
        client.on_settled()

    def take(self, publication: Publication, hops: int) -> None:
        """Hand a publication to the application, unless it is not new or its own (M2)."""
        publisher, sequence = publication.publisher, publication.sequence
        if publisher != self._client.name and sequence > self._last_sequence.get(publisher, -1):
            self._last_sequence[publisher] = sequence
            now_s = self._agenda.now_s
            self._observer.on_delivered([self._client.name], publication, hops, now_s)
