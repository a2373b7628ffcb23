"""The data cluster, as a broker asks it: over HTTP."""

from __future__ import annotations

from msgspec.structs import replace

from godwit.api import datacluster_api
from godwit.api.datacluster_api import (
    BrokerCreated,
    CreateBroker,
    Notices,
    NoticesAfter,
    Pull,
    PullAnswer,
    Subscribe,
    Subscribed,
    Unsubscribe,
)
from godwit.errors import UnreachableError
from godwit.http.http_client import HttpClient, server_urls
from godwit.http.operations import Answer, Asked, Operation

#: Beyond what the data cluster takes its time for.
ANSWER_S = 30.0
#: How long notices are waited for if there is a standby, which may have taken over meanwhile.
SHORT_S = 4.0


class RemoteDataCluster:
    """Tries each call once: its user retries.

    If there is no answer, the next call goes to the next URL: that of a standby.
    """

    def __init__(self, urls: str, secret: str = "") -> None:
        """`urls` are separated by commas."""
        self._callers = [
            HttpClient(url, secret=secret, answer_s=ANSWER_S, attempts=1)
            for url in server_urls(urls)
        ]
        self._current = 0

    async def create_broker(self, request: CreateBroker) -> BrokerCreated:
        return await self._call(datacluster_api.CREATE_BROKER, request)

    async def subscribe(self, request: Subscribe) -> Subscribed:
        return await self._call(datacluster_api.SUBSCRIBE, request)

    async def unsubscribe(self, request: Unsubscribe) -> None:
        await self._call(datacluster_api.UNSUBSCRIBE, request)

    async def notices(self, request: NoticesAfter) -> Notices:
        if len(self._callers) > 1:  # One that is asleep keeps its connections open.
            request = replace(request, wait_s=min(request.wait_s, SHORT_S))
            return await self._call(datacluster_api.NOTICES, request, answer_s=2 * SHORT_S)
        answer_s = request.wait_s + ANSWER_S
        return await self._call(datacluster_api.NOTICES, request, answer_s=answer_s)

    async def pull(self, request: Pull) -> PullAnswer:
        return await self._call(datacluster_api.PULL, request)

    async def close(self) -> None:
        for caller in self._callers:
            await caller.close()

    async def _call(
        self, operation: Operation[Asked, Answer], request: Asked, *, answer_s: float = ANSWER_S
    ) -> Answer:
        asked = self._current
        try:
            return await self._callers[asked].call(operation, request, answer_s=answer_s)
        except UnreachableError:
            if self._current == asked:  # Other calls that failed meanwhile do not go on further.
                self._current = (asked + 1) % len(self._callers)
            raise
