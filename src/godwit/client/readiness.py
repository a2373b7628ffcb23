"""Whether the network is complete: the client asks its broker, again and again if it has to wait.

A question is not part of the session: if it or its answer is lost, because the broker fails or the
client moves, the next one finds out.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from godwit.content.link_messages import MissingBroker, NetworkStatus, StatusRequest
from godwit.errors import NotReadyError

if TYPE_CHECKING:
    from godwit.client.client import Client

#: How often a client that waits for the network asks.
ASK_EVERY_S = 0.2


class Readiness:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._asked = 0
        self._answers: dict[int, asyncio.Future[NetworkStatus]] = {}

    async def status(self) -> NetworkStatus:
        """The next answer of the broker."""
        self._client.check_open()
        asked: list[int] = []
        answered: asyncio.Future[NetworkStatus] = asyncio.get_running_loop().create_future()
        try:
            with self._client.awaiting_notice():
                while not answered.done():
                    asked.append(self._ask(answered))
                    await asyncio.wait([answered], timeout=ASK_EVERY_S)
                    self._client.check_open()
            return answered.result()
        finally:
            for number in asked:
                del self._answers[number]

    def _ask(self, answered: asyncio.Future[NetworkStatus]) -> int:
        self._asked += 1
        self._answers[self._asked] = answered
        # Without a connection nothing would be answered, and questions would pile up.
        if self._client.broker_connection.connection is not None:
            self._client.session.put(StatusRequest(number=self._asked))
            self._client.flush_soon()
        return self._asked

    async def ready(self, timeout_s: float | None) -> None:
        latest: NetworkStatus | None = None
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    latest = await self.status()
                    if latest.is_complete:
                        return
                    await asyncio.sleep(ASK_EVERY_S)
        except TimeoutError:
            missing = () if latest is None else latest.missing
            raise NotReadyError(
                f"the network is not complete after {timeout_s:g} s: {_lacking(latest)}",
                missing=tuple(each.name for each in missing),
            ) from None

    def on_status(self, status: NetworkStatus) -> None:
        answered = self._answers.get(status.number)
        if answered is not None and not answered.done():
            answered.set_result(status)


def _lacking(status: NetworkStatus | None) -> str:
    if status is None:
        return "the broker does not answer"
    return waits_for(status.missing) or "brokers still exchange their tables"


def waits_for(missing: tuple[MissingBroker, ...]) -> str:
    """The missing brokers, for people; empty if there are none."""
    names = ", ".join(map(str, missing))
    return f"{names} {'is' if len(missing) == 1 else 'are'} missing" if missing else ""
