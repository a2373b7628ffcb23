"""Requests to brokers to move their clients: POST /move, without loss (client/live_move.py)."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from godwit.api.broker_api import MOVE, MoveOutcome, MoveRequest
from godwit.coordinator.broker_records import BrokerRecord
from godwit.coordinator.rounds import Batch
from godwit.errors import GodwitError
from godwit.http.http_client import HttpClient


class MoveExecutor:
    """An HTTP client for each broker, open until exit."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._clients: dict[str, HttpClient] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for client in self._clients.values():
            await client.__aexit__(kind, error, traceback)

    async def carry_out(
        self, batch: Batch, brokers: Mapping[str, BrokerRecord]
    ) -> MoveOutcome | str:
        """The broker's answer, or why there is none."""
        http, target = brokers[batch.source].http, brokers[batch.target]
        assert http is not None, "a broker without an HTTP address was asked"
        request = MoveRequest(address=target.url, broker=target.broker, clients=list(batch.clients))
        try:
            if http not in self._clients:
                self._clients[http] = HttpClient(http, secret=self._secret)
            return await self._clients[http].call(MOVE, request, answer_s=batch.answer_s)
        except GodwitError as error:
            return str(error)
