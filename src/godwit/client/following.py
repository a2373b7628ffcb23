"""A durable subscription: nothing is acknowledged before the application has put it away.

    broker --> Line --> Follower: a batch --> keep(batch, mark) --> acknowledged

A mark says how far a batch goes.  It is kept together with it, so that another process can go on
behind the last batch that was kept, and nothing is missing or double.  Meanwhile the broker keeps
the stream, and who publishes for it waits (`Limits.durable_s`).

If the broker has forgotten the stream, because it failed, publications that nobody had answered for
are sent again by their publishers: the application drops those whose sequence number is not above
the last it has of their publisher.

F1  The mark of a new stream is kept before anything is asked for in it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeAlias

from godwit.client.line import Durable, Line, Place
from godwit.client.post import Arrived
from godwit.client.session import ClientSession, Mark
from godwit.content.filters import Filter
from godwit.content.messages import Publication, Refusal, SubscriptionInEffect
from godwit.errors import RefusedError
from godwit.wire.addresses import url_address
from godwit.wire.call import Opener, socket_opener
from godwit.wire.frames import Welcome

#: Puts publications away for good, with the mark behind the last of them, or a later one that is
#: there already: broker and batch may be overtaken by a new stream.
Keep: TypeAlias = Callable[[Sequence[Publication], Mark], Awaitable[None]]
#: The same for a mark alone, at once.
KeepMark: TypeAlias = Callable[[Mark], None]
#: To put a hundred publications away takes hardly longer than one: what comes meanwhile joins it.
GATHERING_S = 0.01


class Keeper(NamedTuple):
    keep: Keep
    keep_mark: KeepMark


class _DurableSession(ClientSession):
    keep_mark: KeepMark

    def welcome(self, welcome: Welcome) -> bytes:
        known = self.stream.id
        lacking = super().welcome(welcome)
        if self.stream.id != known:
            self.keep_mark(self.mark)  # F1: what was put in the stream is not written yet.
        return lacking


def _by_socket(url: str) -> Opener:
    return socket_opener(*url_address(url))


class Follower:
    """`await follower.run()` follows until it is cancelled; the broker then waits for the next."""

    def __init__(
        self,
        url: str,
        *,
        name: str,
        filter: Filter,
        keeper: Keeper,
        mark: Mark | None = None,
        secret: str = "",
        resolve: Callable[[str], Opener] = _by_socket,
    ) -> None:
        first = time.time_ns() // 1000
        self._session = _DurableSession(name, first_sequence=first, first_serial=first)
        self._session.keep_mark = keeper.keep_mark
        if mark is None:
            self._session.subscribe(filter)
        else:
            self._session.adopt(mark, filter)
        self._keep = keeper.keep
        place = Place(url, resolve(url))
        self.line = Line(self._session, [place], listener=self, durable=Durable(secret))
        self._batch: list[Publication] = []
        self._has_batch = asyncio.Event()
        self._in_effect: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if mark is not None:
            self._in_effect.set_result(None)

    async def in_effect(self) -> None:
        """Return when every matching publication from now on will be kept."""
        await asyncio.shield(self._in_effect)

    async def run(self, connect_s: float) -> None:
        """Raises UnreachableError if the broker cannot be reached at first."""
        await self.line.open(connect_s)
        try:
            while True:
                await self._has_batch.wait()
                await asyncio.sleep(GATHERING_S)
                self._has_batch.clear()
                batch, self._batch = self._batch, []
                mark = self._session.mark
                await self._keep(batch, mark)
                self.line.confirm(mark.stream, mark.received)
        finally:
            self.line.abort()  # Without a goodbye, so that the broker waits for the next.

    def end(self) -> None:
        """Give the subscription up, for good."""
        self.line.hang_up("the feed has ended")

    # -- what comes over the line --------------------------------------------------------------

    def on_arrived(self, frame: Arrived, hops: int) -> None:
        if isinstance(frame, Publication):
            self._batch.append(frame)
        elif isinstance(frame, SubscriptionInEffect) and not self._in_effect.done():
            self._in_effect.set_result(None)
        elif isinstance(frame, Refusal) and not self._in_effect.done():
            self._in_effect.set_exception(RefusedError(f"{frame.about}: {frame.reason}"))
        self._has_batch.set()  # Notices count in the stream, too.

    def on_progress(self) -> None:
        pass
