"""Two kinds of people in live tests: those who count aloud, and those who write it down."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from itertools import count, pairwise

from godwit.client import Client, connect
from godwit.content.values import Record

TICKS = "class = 'TICK' and n is present and by is present"


class Speaker:
    """Publishes 0, 1, 2, ..."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.payload = b""
        self.said = 0
        """How many so far."""

    async def say(self, numbers: int = 1) -> None:
        for _ in range(numbers):
            record: Record = {"class": "TICK", "n": self.said, "by": self.client.name}
            self.said += 1  # First: a publication that is interrupted is on its way.
            await self.client.publish(record, payload=self.payload)

    @contextlib.asynccontextmanager
    async def talking(self, *, per_s: float = 10.0, burst: int = 20) -> AsyncIterator[None]:
        """Goes on in the background as long as the context lasts, so many bursts in a second."""
        task = asyncio.create_task(self._talk(per_s, burst))
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _talk(self, per_s: float, burst: int) -> None:
        loop = asyncio.get_running_loop()
        start_s = loop.time()
        for number in count():
            await asyncio.sleep(start_s + number / per_s - loop.time())
            await self.say(burst)


class Listener:
    """Hears everybody, and keeps the numbers of each apart."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.heard: dict[str, list[int]] = {}
        self._news = asyncio.Event()

    async def listen(self, *, ready: asyncio.Event) -> None:
        async with self.client.subscribe("class = 'TICK'") as events:
            await events.in_effect()
            ready.set()
            async for event in events:
                number = event.content["n"]
                assert isinstance(number, int)
                self.heard.setdefault(event.publisher, []).append(number)
                self._news.set()

    async def has_heard(self, speaker: Speaker, *, within_s: float = 20.0) -> None:
        """Wait until the last word of a speaker has come; so has all that will come before it."""
        last, heard = speaker.said - 1, self.heard.setdefault(speaker.client.name, [])
        try:
            async with asyncio.timeout(within_s):
                while not heard or heard[-1] < last:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(
                f"{self.client.name} has not heard {speaker.client.name} say {last},"
                f" but {len(heard)}, at last {heard[-5:]}"
            ) from None

    def has_heard_all(self, speaker: Speaker, *, since: int = 0) -> bool:
        """Everything from `since` on up to the last word that came, in order, each once; nothing
        twice before.  `has_heard` waits for the last word: a speaker may go on meanwhile.
        """
        heard = self.heard[speaker.client.name]
        in_order = all(a < b for a, b in pairwise(heard))
        return in_order and [n for n in heard if n >= since] == list(range(since, heard[-1] + 1))


@contextlib.asynccontextmanager
async def speaker(url: str, name: str) -> AsyncIterator[Speaker]:
    async with connect(url, name=name) as client:
        await client.advertise(TICKS)
        yield Speaker(client)


@contextlib.asynccontextmanager
async def listener(url: str, name: str) -> AsyncIterator[Listener]:
    async with connect(url, name=name) as client:
        person, ready = Listener(client), asyncio.Event()
        task = asyncio.create_task(person.listen(ready=ready))
        async with asyncio.timeout(20):
            await ready.wait()
        try:
            yield person
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
