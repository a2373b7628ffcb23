"""Settling: how a broker learns that all that was published before has arrived.

Ours; the paper's clients do not move.  In a tree a sweep follows the publications on the one path
between two brokers.  Here publications come over many paths, so every broker is asked:

    question   goes from the broker that asks the way of its own publications: to the ring, and from
               there to the mates; so every broker has it once
    answer     goes from every broker to the one that is to be told, the way of its publications: to
               the broker of the ring in that cluster, and from there to its mate
    told       when all have answered, whatever was published before it was asked has arrived

A subscriber that moves   asks at its new broker, where its subscriptions are in effect; its old
                          broker is told.  A publication that the new one does not get was accepted
                          before the question came, so the answer is behind it: `Swept`.
A publisher that moves    asks at its old broker, which is told itself.  The question is behind all
                          that it published, at every broker: `Paused`; it may publish elsewhere.

A broker that is missing does not answer: then clients stay where they are, when their time is over.

Q1  An answer counts once for each broker, and only for the latest question of its client.
Q2  Answers are on the same links as the publications of their broker, behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from msgspec.structs import replace

from godwit.broker.effects import Send
from godwit.broker.routing import Answer, Confirm
from godwit.broker.stimuli import LocalClient, Neighbour
from godwit.content.messages import Paused, Sweep, Swept

#: Clients whose questions may be open at the broker that is to be told; the oldest are forgotten.
OPEN_MAX = 10_000


@dataclass(slots=True)
class _Question:
    move: int
    by: str
    answered: set[str] = field(default_factory=set)


class Settling:
    def __init__(
        self,
        broker: str,
        brokers: Collection[str],
        way_to: Callable[[str], Neighbour | None],
    ) -> None:
        """`way_to` gives the next hop to a broker: the broker itself if it is a mate, else where
        publications for its cluster go.  None if that link is missing.
        """
        self._broker = broker
        self._brokers = frozenset(brokers)
        self._way_to = way_to
        self._open: dict[str, _Question] = {}
        """By client; this broker is to be told."""

    def await_only(self, brokers: Collection[str]) -> None:
        """Others have left."""
        self._brokers = frozenset(brokers)

    def asked(self, sweep: Sweep, forward_to: Collection[Neighbour]) -> list[Answer]:
        """A question has come, or begins here: pass it on, and answer it."""
        answers: list[Answer] = [Send(link, sweep) for link in forward_to]
        return answers + self.answered(replace(sweep, origin=self._broker))

    def answered(self, sweep: Sweep) -> list[Answer]:
        """An answer, of this broker or another one: count it, or pass it on (Q2)."""
        if sweep.to != self._broker:
            way = self._way_to(sweep.to) if sweep.to in self._brokers else None
            return [] if way is None else [Send(way, sweep)]
        question = self._open.get(sweep.client)
        if question is None or (question.move, question.by) != (sweep.move, sweep.by):
            if question is not None and question.move > sweep.move:
                return []  # Q1: of a move that is over.
            self._open.pop(sweep.client, None)
            question = self._open[sweep.client] = _Question(sweep.move, sweep.by)
            if len(self._open) > OPEN_MAX:
                del self._open[next(iter(self._open))]
        question.answered.add(sweep.origin)
        if not question.answered >= self._brokers:
            return []
        del self._open[sweep.client]
        notice = Paused if sweep.by == self._broker else Swept
        return [Confirm(LocalClient(sweep.client), notice(move=sweep.move))]
