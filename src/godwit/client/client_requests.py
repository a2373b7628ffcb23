"""Asks a broker for what a client holds, and withdraws it.  Pure.

While the client moves, neither broker is asked: what is asked for or withdrawn meanwhile waits for
the end of the move, and concerns the broker where that ends.

Q1  Each thing that is held is asked for once at a broker.
Q2  A broker is not sent the withdrawal of what it was not asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from godwit.client.holdings import Held, Holdings, Withdrawal
from godwit.content.channel_messages import ChannelSubscription
from godwit.content.messages import Advertisement, Subscription, Unsubscription
from godwit.migration.move import Move

Request: TypeAlias = Advertisement | Subscription | ChannelSubscription | Withdrawal


class ClientRequests:
    def __init__(self, holdings: Holdings, send: Callable[[Request], None]) -> None:
        self.is_moving = False
        self.are_waiting = False
        """Something was asked for or withdrawn during the move."""
        self._holdings = holdings
        self._send = send
        self._withdrawn: list[Withdrawal] = []
        self._moves = 0

    def ask(self, held: Held) -> None:
        held.is_asked = not self.is_moving
        if held.is_asked:
            self._send(held.request())
        else:
            self.are_waiting = True

    def ask_for_all(self) -> None:
        for held in self._holdings.all:
            self.ask(held)

    def withdraw(self, held: Held) -> None:
        """`held` has been removed from the holdings."""
        if not held.is_asked:  # Q2
            return
        if self.is_moving:
            self._withdrawn.append(held.withdrawal())
            self.are_waiting = True
        else:
            self._send(held.withdrawal())

    # -- moving --------------------------------------------------------------------------------

    def plan_move(self, source: str) -> Move:
        """Begin a move away from the broker `source`."""
        self._moves += 1
        self.is_moving = True
        return self._holdings.plan_move(self._moves, source)

    def arrive(self, move: Move) -> None:
        """The move ends at the new broker: from now on it is the one that is asked."""
        self._holdings.arrive(move)
        self._withdrawn = [
            Unsubscription(id=move.subscriptions[gone.id].id)
            if isinstance(gone, Unsubscription)
            else gone
            for gone in self._withdrawn
        ]

    def settle(self, *, is_forgotten: bool = False) -> None:
        """The move is over: send what waited for that.

        A broker that has forgotten the client needs no withdrawals; the caller asks it for
        everything again.
        """
        self.is_moving = self.are_waiting = False
        withdrawn, self._withdrawn = self._withdrawn, []
        if is_forgotten:
            return
        for withdrawal in withdrawn:
            self._send(withdrawal)
        for held in self._holdings.all:
            if not held.is_asked:  # Q1
                self.ask(held)
