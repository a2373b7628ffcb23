"""Asks brokers to move clients, as paced_moves.py says, and collects what came of it."""

from __future__ import annotations

import asyncio
import time
from typing import Self

from godwit.api.network_api import Authority
from godwit.coordinator.broker_calls import BrokerCalls
from godwit.coordinator.paced_moves import MoveBatch, PacedMoves
from godwit.errors import GodwitError
from godwit.http.errors import RestError

#: Time for a broker's answer beyond the time for its clients.
ANSWER_GRACE_S = 5.0


class MovingClients:
    """On exit, requests that are not answered are given up; clients that were asked may move."""

    def __init__(
        self, moves: PacedMoves, calls: BrokerCalls, authority: Authority, *, within_s: float
    ) -> None:
        self.moves = moves
        self._calls = calls
        self._authority = authority
        self._within_s = within_s
        self._asking: set[asyncio.Task[None]] = set()
        self._superseded: RestError | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        for task in self._asking:
            task.cancel()
        await asyncio.gather(*self._asking, return_exceptions=True)

    @property
    def is_asking(self) -> bool:
        return bool(self._asking)

    def ask(self) -> None:
        """Ask those whose turn it is."""
        for batch in self.moves.hand_out(time.time()):
            task = asyncio.create_task(self._ask(batch))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    def check(self) -> None:
        """Raise the refusal of a broker that obeys another coordinator."""
        if self._superseded is not None:
            raise self._superseded

    async def _ask(self, batch: MoveBatch) -> None:
        outcome = await self._calls.move(
            batch.source,
            batch.target,
            batch.clients,
            self._authority,
            within_s=self._within_s,
            answer_s=self._within_s + ANSWER_GRACE_S,
        )
        if isinstance(outcome, RestError) and outcome.where == "authority":
            self._superseded = outcome
        came_of_it = str(outcome) if isinstance(outcome, GodwitError) else outcome
        self.moves.carried_out(batch, came_of_it, time.time())
