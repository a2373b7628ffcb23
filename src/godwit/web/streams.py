"""Server-sent events: what a page is told without asking.

    event: overview    the network now; each round
    event: activity    moves, decisions, changes; if they have changed
    event: channels    datasets and channels; if they have changed

S1  A page gets PAGE_BYTES_S bytes per second on average at most, compressed if it can read that: if
    an overview is larger than a round allows, some rounds are left out.  A page that reads slowly
    gets the latest, not a queue.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Protocol
from zlib import MAX_WBITS, Z_SYNC_FLUSH, compressobj

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from godwit.api.dashboard_api import Activity, ChannelsView, Overview

PAGE_BYTES_S = 32_000
GZIP = "gzip"
#: A comment is sent after so long without an event, so that a page that is gone is noticed.
QUIET_S = 10.0
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


class PageSource(Protocol):
    """What pages show: a network that runs, or a recorded one."""

    @property
    def overview(self) -> Overview | None: ...

    @property
    def activity(self) -> Activity: ...

    @property
    def channels(self) -> ChannelsView: ...

    def watching(self, on_round: Callable[[], None], /) -> AbstractContextManager[None]:
        """A page is open: `on_round` is called when there is something new."""
        ...


def event(name: str, content: object) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(content))


def event_response(events: AsyncIterator[bytes], encoding: str = "") -> Response:
    headers = {**HEADERS, "content-encoding": encoding} if encoding else HEADERS
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


def page_stream(source: PageSource) -> Callable[[Request], Awaitable[Response]]:
    async def stream(request: Request) -> Response:
        if GZIP not in request.headers.get("accept-encoding", ""):
            return event_response(page_events(source))
        packer = compressobj(wbits=MAX_WBITS + 16)  # With the header of gzip.

        def packed(message: bytes) -> bytes:
            return packer.compress(message) + packer.flush(Z_SYNC_FLUSH)

        return event_response(page_events(source, packed), GZIP)

    return stream


async def page_events(
    source: PageSource, packed: Callable[[bytes], bytes] = bytes
) -> AsyncIterator[bytes]:
    """What one page is told, until it is closed."""
    fresh = asyncio.Event()
    sent: dict[str, object] = {}
    with source.watching(fresh.set):
        if source.overview is not None:
            fresh.set()
        while True:
            try:
                async with asyncio.timeout(QUIET_S):
                    await fresh.wait()
            except TimeoutError:
                yield packed(b": still here\n\n")
                continue
            fresh.clear()
            parts = {
                "overview": source.overview,
                "activity": source.activity,
                "channels": source.channels,
            }
            changed = {name: part for name, part in parts.items() if sent.get(name) != part}
            sent |= changed
            message = b"".join(event(name, part) for name, part in changed.items())
            if message:
                sending = packed(message)
                yield sending
                await asyncio.sleep(len(sending) / PAGE_BYTES_S)
