"""The data cluster, as a broker asks it: over HTTP."""

from __future__ import annotations

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
from godwit.http.http_client import HttpClient

#: Beyond what the data cluster takes its time for.
ANSWER_S = 30.0


class RemoteDataCluster:
    """Tries each call once: its user retries."""

    def __init__(self, url: str, secret: str = "") -> None:
        self._caller = HttpClient(url, secret=secret, answer_s=ANSWER_S, attempts=1)

    async def create_broker(self, request: CreateBroker) -> BrokerCreated:
        return await self._caller.call(datacluster_api.CREATE_BROKER, request)

    async def subscribe(self, request: Subscribe) -> Subscribed:
        return await self._caller.call(datacluster_api.SUBSCRIBE, request)

    async def unsubscribe(self, request: Unsubscribe) -> None:
        await self._caller.call(datacluster_api.UNSUBSCRIBE, request)

    async def notices(self, request: NoticesAfter) -> Notices:
        answer_s = request.wait_s + ANSWER_S
        return await self._caller.call(datacluster_api.NOTICES, request, answer_s=answer_s)

    async def pull(self, request: Pull) -> PullAnswer:
        return await self._caller.call(datacluster_api.PULL, request)

    async def close(self) -> None:
        await self._caller.close()
