"""What a subscription delivers: an asynchronous iterator that also says when it is in effect.

    async with client.subscribe(...) as events:    ends with the block
        async for event in events: ...

    async for event in client.subscribe(...): ...  ends when the iterator is dropped

A subscription to filters delivers publications, one to a channel the rows of its results.

V1  It begins when it is used for the first time: entered, iterated or awaited.
V2  It ends when its block is left, when the client is closed or, if it was not entered, when the
    application holds the iterator no longer.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Collection
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self

from godwit.client.event_queue import ChannelEvent, ChannelQueue, E, Event, EventQueue, FilterQueue
from godwit.content.channel_messages import Position
from godwit.content.filters import Filter
from godwit.content.messages import SubscriptionId
from godwit.content.values import Value
from godwit.errors import UsageError

if TYPE_CHECKING:
    from godwit.client.dispatch import EventDispatch


class EventIterator(ABC, Generic[E]):
    def __init__(self, dispatch: EventDispatch) -> None:
        self._dispatch = dispatch
        self._queue: EventQueue[E] | None = None
        self._is_entered = False

    @abstractmethod
    def _subscribe(self) -> EventQueue[E]: ...

    def _begun(self) -> EventQueue[E]:
        """The queue; the subscription begins with the first call (V1)."""
        queue = self._queue
        if queue is None:
            queue = self._queue = self._subscribe()
        return queue

    async def __aenter__(self) -> Self:
        if self._is_entered or (self._queue is not None and self._queue.error is not None):
            raise UsageError("a subscription can be entered once; subscribe again for another one")
        self._begun()
        self._is_entered = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._dispatch.finish(self._begun())

    def __del__(self) -> None:
        """V2.  Python may call this in any thread."""
        queue = getattr(self, "_queue", None)  # None if the constructor failed.
        if queue is not None and queue.error is None and not self._is_entered:
            with contextlib.suppress(RuntimeError):  # The loop is closed, and the client with it.
                queue.loop.call_soon_threadsafe(self._dispatch.finish, queue)

    @property
    def waiting(self) -> Collection[E]:
        """Events that have arrived and were not taken yet."""
        return () if self._queue is None else self._queue.waiting

    async def in_effect(self) -> None:
        """Return when everything that was subscribed to is delivered from now on.

        Raises RefusedError if the subscription is refused or was ended.
        """
        queue = self._begun()
        with self._dispatch.awaiting_notice():
            await queue.in_effect()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> E:
        queue = self._queue or self._begun()
        while not queue.waiting:
            await queue.arrival()
        event = queue.waiting.popleft()
        if queue.is_crowded:
            self._dispatch.on_taken_while_crowded(queue)
        return event


class Events(EventIterator[Event]):
    """Publications that any of the filters matches."""

    _queue: FilterQueue | None

    def __init__(
        self, dispatch: EventDispatch, filters: tuple[Filter, ...], *, local_only: bool = False
    ) -> None:
        super().__init__(dispatch)
        self.filters = filters
        self._local_only = local_only

    def _subscribe(self) -> FilterQueue:
        return self._dispatch.begin(self.filters, local_only=self._local_only)

    @property
    def ids(self) -> tuple[SubscriptionId, ...]:
        """Of each filter; empty until the subscription has begun."""
        return () if self._queue is None else tuple(self._queue.ids)

    @property
    def dropped(self) -> int:
        """Publications to this client that the broker could not keep, because the client was too
        slow or away for too long.  They may or may not have been for this subscription.
        """
        return 0 if self._queue is None else self._queue.dropped


class ChannelEvents(EventIterator[ChannelEvent]):
    """The rows of a channel's results, for one choice of arguments."""

    _queue: ChannelQueue | None

    def __init__(self, dispatch: EventDispatch, channel: str, arguments: dict[str, Value]) -> None:
        super().__init__(dispatch)
        self.channel = channel
        self.arguments = arguments

    def _subscribe(self) -> ChannelQueue:
        return self._dispatch.begin_channel(self.channel, self.arguments)

    @property
    def start(self) -> Position | None:
        """The first execution whose rows are delivered, and the first row; None until it is in
        effect.
        """
        return None if self._queue is None else self._queue.start
