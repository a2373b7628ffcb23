"""Two kinds of clients for live tests: one publishes 0, 1, 2, ..., the other records it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from itertools import count, pairwise

from godwit.client import Client, connect
from godwit.content.values import Record

TICKS = "class = 'TICK' and n is present and by is present"


class TickPublisher:
    """Publishes 0, 1, 2, ..."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.payload = b""
        self.published = 0
        """Publications so far."""

    async def publish(self, numbers: int = 1) -> None:
        for _ in range(numbers):
            record: Record = {"class": "TICK", "n": self.published, "by": self.client.name}
            self.published += 1  # First: an interrupted publication may have left.
            await self.client.publish(record, payload=self.payload)

    @contextlib.asynccontextmanager
    async def publishing(self, *, per_s: float = 10.0, burst: int = 20) -> AsyncIterator[None]:
        """Publishes in the background within the context, so many bursts in a second."""
        task = asyncio.create_task(self._publish_bursts(per_s, burst))
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _publish_bursts(self, per_s: float, burst: int) -> None:
        loop = asyncio.get_running_loop()
        start_s = loop.time()
        for number in count():
            await asyncio.sleep(start_s + number / per_s - loop.time())
            await self.publish(burst)


class TickSubscriber:
    """Receives the ticks of all publishers, and records the numbers of each."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.received: dict[str, list[int]] = {}
        self._news = asyncio.Event()

    async def read(self, *, ready: asyncio.Event) -> None:
        async with self.client.subscribe("class = 'TICK'") as events:
            await events.in_effect()
            ready.set()
            async for event in events:
                number = event.content["n"]
                assert isinstance(number, int)
                self.received.setdefault(event.publisher, []).append(number)
                self._news.set()

    async def has_received(self, publisher: TickPublisher, *, within_s: float = 20.0) -> None:
        """Wait for the last publication so far; nothing that arrives later precedes it."""
        last = publisher.published - 1
        received = self.received.setdefault(publisher.client.name, [])
        try:
            async with asyncio.timeout(within_s):
                while not received or received[-1] < last:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(
                f"{self.client.name} has not received {last} of {publisher.client.name},"
                f" but {len(received)} numbers, the last ones {received[-5:]}"
            ) from None

    def has_received_all(self, publisher: TickPublisher, *, since: int = 0) -> bool:
        """Whether all from `since` up to the last number received have arrived once and in order,
        and none twice before.  Use `has_received` first: a publisher may still publish.
        """
        received = self.received[publisher.client.name]
        in_order = all(a < b for a, b in pairwise(received))
        expected = list(range(since, received[-1] + 1))
        return in_order and [n for n in received if n >= since] == expected


@contextlib.asynccontextmanager
async def tick_publisher(url: str, name: str) -> AsyncIterator[TickPublisher]:
    async with connect(url, name=name) as client:
        await client.advertise(TICKS)
        yield TickPublisher(client)


@contextlib.asynccontextmanager
async def tick_subscriber(url: str, name: str) -> AsyncIterator[TickSubscriber]:
    async with connect(url, name=name) as client:
        subscriber, ready = TickSubscriber(client), asyncio.Event()
        task = asyncio.create_task(subscriber.read(ready=ready))
        async with asyncio.timeout(20):
            await ready.wait()
        try:
            yield subscriber
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
