"""A durable subscription: nothing is acknowledged before the application has stored it.

    broker --> BrokerConnection --> a batch --> keep(batch, mark) --> acknowledged

A mark says where a batch ends.  It is stored together with the batch, so that another process can
continue after the last stored batch, without loss or duplicates.  Meanwhile the broker keeps the
stream, and publishers of matching publications wait (`Limits.durable_s`).

If the broker has forgotten the stream, because it failed, publishers send again what was not
acknowledged: the application drops those whose sequence number is not above the last one it has of
their publisher's incarnation.

F1  The mark of a new stream is stored before anything is requested in it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeAlias

from godwit.client.broker_connection import (
    BrokerConnection,
    BrokerPlace,
    DurableClient,
    new_incarnation,
)
from godwit.client.client_session import ClientSession, StreamMark
from godwit.client.stream_endpoint import NumberedFrame
from godwit.content.filters import Filter
from godwit.content.messages import GapNotice, Publication, Refusal, SubscriptionInEffect
from godwit.errors import RefusedError, TakenOverError
from godwit.protocol.call import Opener, url_opener
from godwit.protocol.frames import Welcome

log = logging.getLogger("godwit.durable")

#: Stores publications durably, with the mark after the last of them, or a later mark that is stored
#: already: a new stream may have begun before the batch was stored.
Keep: TypeAlias = Callable[[Sequence[Publication], StreamMark], Awaitable[None]]
#: Stores a mark alone, before it returns.
KeepMark: TypeAlias = Callable[[StreamMark], None]
#: To store a hundred publications takes hardly longer than one: wait for more to join the batch.
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
            self.keep_mark(self.mark)  # F1: nothing in the new stream has been written yet.
        return lacking


class DurableSubscription:
    """`run` receives until it is cancelled; the broker keeps the stream for the next process."""

    def __init__(
        self,
        url: str,
        *,
        name: str,
        filter: Filter,
        keeper: Keeper,
        mark: StreamMark | None = None,
        secret: str = "",
        resolve: Callable[[str], Opener] = url_opener,
    ) -> None:
        self._session = _DurableSession(name, incarnation=new_incarnation())
        self._session.keep_mark = keeper.keep_mark
        if mark is None:
            self._session.subscribe(filter)
        else:
            self._session.adopt(mark, filter)
        self._keep = keeper.keep
        place = BrokerPlace(url, resolve(url))
        self._connection = BrokerConnection(
            self._session, [place], listener=self, durable=DurableClient(secret)
        )
        self._batch: list[Publication] = []
        self._has_batch = asyncio.Event()
        self._in_effect: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if mark is not None:
            self._in_effect.set_result(None)

    async def in_effect(self) -> None:
        """Return when every matching publication from now on will be stored."""
        await asyncio.shield(self._in_effect)

    async def run(self, connect_s: float) -> None:
        """Raises UnreachableError if the first connection to the broker fails."""
        await self._connection.open(connect_s)
        try:
            while True:
                await self._has_batch.wait()
                await asyncio.sleep(GATHERING_S)
                self._has_batch.clear()
                batch, self._batch = self._batch, []
                mark = self._session.mark
                await self._keep(batch, mark)
                self._connection.confirm(mark.stream, mark.received)
        finally:
            self._connection.abort()  # Without Goodbye, so that the broker keeps the stream.

    def end(self) -> None:
        """End the subscription: the broker forgets it."""
        self._connection.leave("the feed has ended")

    # -- what the broker sends -----------------------------------------------------------------

    def on_message(self, message: NumberedFrame, hops: int) -> None:
        if isinstance(message, Publication):
            self._batch.append(message)
        elif isinstance(message, SubscriptionInEffect) and not self._in_effect.done():
            self._in_effect.set_result(None)
        elif isinstance(message, Refusal) and not self._in_effect.done():
            self._in_effect.set_exception(RefusedError(f"{message.about}: {message.reason}"))
        elif isinstance(message, GapNotice):
            extra = {"client": self._session.name, "broker": message.broker}
            # Without a loss it may be a network that is being stopped.
            level = logging.WARNING if message.lost else logging.INFO
            log.log(level, "gap over" if message.is_over else "gap", extra=extra)
        self._has_batch.set()  # Notices are numbered in the stream, too.

    def on_progress(self) -> None:
        pass

    def on_taken_over(self, error: TakenOverError) -> None:
        """Does not happen: a durable client makes no claim, its stream is its own."""
