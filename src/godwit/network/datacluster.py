"""The data cluster, as a broker asks it: over HTTP."""

from __future__ import annotations

from godwit.channels.requests import (
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
from godwit.rest import datacluster
from godwit.rest.calling import Caller

#: Beyond what the data cluster takes its time for.
ANSWER_S = 30.0


class RemoteDataCluster:
    """Whoever uses it tries again, so it tries once."""

    def __init__(self, url: str, secret: str = "") -> None:
        self._caller = Caller(url, secret=secret, answer_s=ANSWER_S, attempts=1)

    async def create_broker(self, request: CreateBroker) -> BrokerCreated:
        return await self._caller.call(datacluster.CREATE_BROKER, request)

    async def subscribe(self, request: Subscribe) -> Subscribed:
        return await self._caller.call(datacluster.SUBSCRIBE, request)

    async def unsubscribe(self, request: Unsubscribe) -> None:
        await self._caller.call(datacluster.UNSUBSCRIBE, request)

    async def notices(self, request: NoticesAfter) -> Notices:
        answer_s = request.wait_s + ANSWER_S
        return await self._caller.call(datacluster.NOTICES, request, answer_s=answer_s)

    async def pull(self, request: Pull) -> PullAnswer:
        return await self._caller.call(datacluster.PULL, request)

    async def close(self) -> None:
        await self._caller.close()
