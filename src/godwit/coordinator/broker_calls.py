"""Requests to brokers over HTTP: to move their clients without loss, and orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from godwit.api.broker_api import MOVE, MoveOutcome, MoveRequest
from godwit.api.network_api import Authority
from godwit.coordinator.broker_records import BrokerRecord
from godwit.errors import GodwitError, UnreachableError
from godwit.http.http_client import HttpClient
from godwit.http.operations import Answer, Asked, Operation


class BrokerCalls:
    """An HTTP client for each broker, open until exit."""

    def __init__(self, brokers: Mapping[str, BrokerRecord], secret: str) -> None:
        self._brokers = brokers
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

    async def call(
        self, broker: str, operation: Operation[Asked, Answer], request: Asked, *, answer_s: float
    ) -> Answer:
        """One attempt; UnreachableError if there is no answer."""
        record = self._brokers.get(broker)
        if record is None or record.http is None:
            raise UnreachableError(f"broker {broker} has no HTTP address")
        if record.http not in self._clients:
            client = HttpClient(record.http, secret=self._secret, attempts=1)
            self._clients[record.http] = client
        return await self._clients[record.http].call(operation, request, answer_s=answer_s)

    async def move(
        self,
        source: str,
        target: str,
        clients: Sequence[str],
        authority: Authority,
        *,
        answer_s: float,
        within_s: float | None = None,
    ) -> MoveOutcome | GodwitError:
        """The broker's answer, or why there is none."""
        there = self._brokers.get(target)
        if there is None:
            return UnreachableError(f"broker {target} has left")
        request = MoveRequest(
            address=there.url,
            broker=target,
            clients=list(clients),
            within_s=within_s,
            authority=authority,
        )
        try:
            return await self.call(source, MOVE, request, answer_s=answer_s)
        except GodwitError as error:
            return error
