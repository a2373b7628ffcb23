"""Calls to the servers of a network: a client for each address, and not too many calls at a time.

A server that does not answer soon counts as silent: there will be another look at it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Self

from godwit.errors import GodwitError
from godwit.http.http_client import HttpClient
from godwit.http.operations import Answer, Asked, Operation

ANSWER_S = 3.0
CALLS_AT_ONCE = 16


class ServerCalls:
    def __init__(self, secret: str = "") -> None:
        self._secret = secret
        self._clients: dict[str, HttpClient] = {}
        self._room = asyncio.Semaphore(CALLS_AT_ONCE)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        for client in self._clients.values():
            await client.close()
        self._clients.clear()

    async def call(
        self,
        url: str,
        operation: Operation[Asked, Answer],
        request: Asked,
        *,
        answer_s: float = ANSWER_S,
    ) -> Answer:
        """The answer; raises GodwitError if there is none."""
        client = self._clients.get(url)
        if client is None:
            client = HttpClient(url, secret=self._secret, answer_s=ANSWER_S, attempts=1)
            self._clients[url] = client
        async with self._room:
            return await client.call(operation, request, answer_s=answer_s)

    async def call_all(
        self, urls: Mapping[str, str], operation: Operation[Asked, Answer], request: Asked
    ) -> dict[str, Answer | GodwitError]:
        """The answer, or the error, of each server by name."""

        async def one(url: str) -> Answer | GodwitError:
            try:
                return await self.call(url, operation, request)
            except GodwitError as error:
                return error

        answers = await asyncio.gather(*(one(url) for url in urls.values()))
        return dict(zip(urls, answers, strict=True))

    async def keep(self, urls: set[str]) -> None:
        """Close the connections to servers at other addresses."""
        for url in self._clients.keys() - urls:
            await self._clients.pop(url).close()
