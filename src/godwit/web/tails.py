"""The live tail: publications that match a filter, as they are delivered to a subscriber.

A tail is a client of the network with a real subscription, so it costs what a subscriber costs.
What it shows is sampled, what it takes is not.

W1  A page gets SHOWN_PER_S publications per second at most, and is told how many were left out.
W2  At most TAILS_MAX tails are open at a time; a tail ends with its page.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

import msgspec

from godwit.client import connect
from godwit.client.event_queue import Event
from godwit.content.filters import Filter
from godwit.content.text import format_record
from godwit.errors import GodwitError
from godwit.http.errors import RestError
from godwit.web.streams import QUIET_S, event

SHOWN_PER_S = 20
TAILS_MAX = 8
TOO_MANY = 429
CONNECT_S = 5.0
#: Text of one record, at most.
TEXT_MAX = 2_000


class TailedEvent(msgspec.Struct, frozen=True):
    at_s: float
    publisher: str
    sequence: int
    hops: int
    delay_s: float
    text: str


class TailedSecond(msgspec.Struct, frozen=True):
    events: list[TailedEvent]
    matched: int
    """Since the last message, also those that are not shown."""

    seconds: float


class Tails:
    def __init__(self, url_of_broker: Callable[[], str | None]) -> None:
        self._url_of_broker = url_of_broker
        self.open = 0

    def begin(self, text: str) -> AsyncIterator[bytes]:
        """Events for a page; raises UsageError for a filter that cannot be read."""
        wanted = Filter.parse(text)
        if self.open >= TAILS_MAX:
            raise RestError(TOO_MANY, f"{TAILS_MAX} tails are open; close one", retry_after_s=5)
        url = self._url_of_broker()
        if url is None:
            raise RestError(503, "no broker answers", retry_after_s=2)
        return self._events(wanted, url)

    async def _events(self, wanted: Filter, url: str) -> AsyncIterator[bytes]:
        self.open += 1
        try:
            async with (
                connect(url, connect_s=CONNECT_S) as client,
                client.subscribe(wanted) as events,
            ):
                await events.in_effect()
                yield event("ready", {"broker": url, "filter": str(wanted)})
                sampler = _Sampler()
                reading = asyncio.create_task(sampler.read(events))
                try:
                    while not reading.done():
                        yield await sampler.next()
                    yield event("ended", {"reason": str(reading.exception() or "closed")})
                finally:
                    reading.cancel()
                    with contextlib.suppress(asyncio.CancelledError, GodwitError):
                        await reading
        except GodwitError as error:
            yield event("ended", {"reason": str(error)})
        finally:
            self.open -= 1


class _Sampler:
    """Takes everything, and keeps the first ones of each second."""

    def __init__(self) -> None:
        self._kept: list[TailedEvent] = []
        self._matched = 0
        self._some = asyncio.Event()
        self._since_s = time.monotonic()

    async def read(self, events: AsyncIterator[Event]) -> None:
        async for each in events:
            self._matched += 1
            if len(self._kept) < SHOWN_PER_S:
                self._kept.append(_shown(each))
            self._some.set()

    async def next(self) -> bytes:
        """What came within a second, once something has come."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(QUIET_S):
                await self._some.wait()
            await asyncio.sleep(1.0)
        self._some.clear()
        kept, matched = self._kept, self._matched
        now_s = time.monotonic()
        seconds, self._since_s = now_s - self._since_s, now_s
        self._kept, self._matched = [], 0
        return event("records", TailedSecond(kept, matched, seconds))


def _shown(each: Event) -> TailedEvent:
    now_s = time.time()
    text = format_record(each.content)
    return TailedEvent(
        at_s=now_s,
        publisher=each.publisher,
        sequence=each.sequence,
        hops=each.hops,
        delay_s=max(0.0, now_s - each.accepted_s),
        text=text if len(text) <= TEXT_MAX else text[:TEXT_MAX] + " ...",
    )
