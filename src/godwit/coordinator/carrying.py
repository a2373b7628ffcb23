"""Asking brokers to move their clients: POST /move, which loses nothing (client/journey.py)."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from godwit.coordinator.records import BrokerRecord
from godwit.coordinator.rounds import Batch
from godwit.errors import GodwitError
from godwit.rest.calling import Caller
from godwit.rest.moving import MOVE, MoveOutcome, MoveRequest


class Carrier:
    """Keeps a caller for each broker until it is left."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._callers: dict[str, Caller] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for caller in self._callers.values():
            await caller.__aexit__(kind, error, traceback)

    async def carry_out(
        self, batch: Batch, brokers: Mapping[str, BrokerRecord]
    ) -> MoveOutcome | str:
        """What the broker says, or why nobody knows."""
        http, target = brokers[batch.source].http, brokers[batch.target]
        assert http is not None, "somebody without an address was asked"
        request = MoveRequest(address=target.url, broker=target.broker, clients=list(batch.clients))
        try:
            if http not in self._callers:
                self._callers[http] = Caller(http, secret=self._secret)
            return await self._callers[http].call(MOVE, request, answer_s=batch.answer_s)
        except GodwitError as error:
            return str(error)
