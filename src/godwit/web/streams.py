"""Server-sent events: what a page is told without asking.

    event: overview    the network now; each round
    event: activity    moves, decisions, changes; if they have changed
    event: channels    datasets and channels; if they have changed

S1  A page gets PAGE_BYTES_S bytes per second on average at most: if an overview is larger than a
    round allows, some rounds are left out.  A page that reads slowly gets the latest, not a queue.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from godwit.web.gatherer import Gatherer

PAGE_BYTES_S = 32_000
#: A comment is sent after so long without an event, so that a page that is gone is noticed.
QUIET_S = 10.0
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


def event(name: str, content: object) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(content))


def event_response(events: AsyncIterator[bytes]) -> Response:
    return StreamingResponse(events, media_type="text/event-stream", headers=HEADERS)


def page_stream(gatherer: Gatherer) -> Callable[[Request], Awaitable[Response]]:
    async def stream(_request: Request) -> Response:
        return event_response(page_events(gatherer))

    return stream


async def page_events(gatherer: Gatherer) -> AsyncIterator[bytes]:
    """What one page is told, until it is closed."""
    fresh = asyncio.Event()
    sent: dict[str, object] = {}
    with gatherer.watching(fresh.set):
        if gatherer.overview is not None:
            fresh.set()
        while True:
            try:
                async with asyncio.timeout(QUIET_S):
                    await fresh.wait()
            except TimeoutError:
                yield b": still here\n\n"
                continue
            fresh.clear()
            parts = {
                "overview": gatherer.overview,
                "activity": gatherer.activity,
                "channels": gatherer.channels,
            }
            changed = {name: part for name, part in parts.items() if sent.get(name) != part}
            sent |= changed
            message = b"".join(event(name, part) for name, part in changed.items())
            if message:
                yield message
                await asyncio.sleep(len(message) / PAGE_BYTES_S)
