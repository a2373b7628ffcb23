"""What a subscription delivers: an asynchronous iterator that also says when it is in effect.

A subscription to filters delivers publications, one to a channel the rows of its results.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TypeVar

import msgspec

from godwit.content.channel_messages import ChannelSubscriptionId, Position
from godwit.content.filters import Filter
from godwit.content.messages import SubscriptionId
from godwit.content.values import Value

if TYPE_CHECKING:
    from godwit.client.dispatch import EventDispatch

#: Events that wait for the application; with more, the client acknowledges nothing.
EVENTS_WAITING_MAX = 10_000


class Event(msgspec.Struct, frozen=True):
    """One publication as a subscriber sees it."""

    content: dict[str, Value]
    payload: bytes
    publisher: str
    sequence: int
    hops: int
    """Overlay links between the publisher's broker and the subscriber's."""

    accepted_s: float
    """When the publisher's broker accepted it, in seconds since 1970."""


class ChannelEvent(msgspec.Struct, frozen=True):
    """One row of the results of a channel."""

    content: dict[str, Value]
    channel: str
    execution: int
    row: int
    """Its number among the rows of this execution for the subscription."""

    executed_s: float
    """When the execution began, in seconds since 1970."""


E = TypeVar("E", Event, ChannelEvent)


class EventIterator(ABC, Generic[E]):
    """`async with client.subscribe(...) as events: async for event in events: ...`"""

    def __init__(self, dispatch: EventDispatch) -> None:
        self.waiting: deque[E] = deque()
        self.is_crowded = False
        """More than EVENTS_WAITING_MAX have been waiting, and half of that still are."""
        self._dispatch = dispatch
        self._in_effect: asyncio.Future[None] | None = None
        self._wake: asyncio.Future[None] | None = None
        self._is_over = False

    async def __aenter__(self) -> Self:
        self._in_effect = asyncio.get_running_loop().create_future()
        self._begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._finish()
        self.end()

    @abstractmethod
    def _begin(self) -> None: ...

    @abstractmethod
    def _finish(self) -> None: ...

    @abstractmethod
    def _on_taken_while_crowded(self) -> None: ...

    async def in_effect(self) -> None:
        """Return when everything that was subscribed to is delivered from now on."""
        assert self._in_effect is not None, "use `async with client.subscribe(...)`"
        with self._dispatch.awaiting_notice():
            await asyncio.shield(self._in_effect)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> E:
        while not self.waiting:
            if self._is_over:
                raise StopAsyncIteration
            if self._wake is None:
                self._wake = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._wake)
        event = self.waiting.popleft()
        if self.is_crowded:
            self._on_taken_while_crowded()
        return event

    # -- called by the dispatch ----------------------------------------------------------------

    def put(self, event: E) -> None:
        self.waiting.append(event)
        if self._wake is not None:
            self._wake_up()

    def confirm(self) -> None:
        """The subscription is in effect."""
        if self._in_effect is not None and not self._in_effect.done():
            self._in_effect.set_result(None)

    def fail(self, error: Exception) -> None:
        """The broker refused the subscription, or the client was closed."""
        if self._in_effect is not None and not self._in_effect.done():
            self._in_effect.set_exception(error)
            self._in_effect.exception()  # Retrieved, so that asyncio does not log it.
        self.end()

    def end(self) -> None:
        """No more events will follow; those that wait may still be read."""
        self._is_over = True
        self._wake_up()

    def _wake_up(self) -> None:
        if self._wake is not None:
            if not self._wake.done():
                self._wake.set_result(None)
            self._wake = None


class Events(EventIterator[Event]):
    """Publications that any of the filters matches."""

    def __init__(self, dispatch: EventDispatch, filters: tuple[Filter, ...]) -> None:
        super().__init__(dispatch)
        self.filters = filters
        self.ids: tuple[SubscriptionId, ...] = ()
        self.dropped = 0
        """Publications to this client that the broker could not keep, because the client was too
        slow or away for too long.  They may or may not have been for this subscription."""
        self.unconfirmed: set[SubscriptionId] = set()

    def _begin(self) -> None:
        self._dispatch.begin(self)

    def _finish(self) -> None:
        self._dispatch.finish(self)

    def _on_taken_while_crowded(self) -> None:
        self._dispatch.on_taken_while_crowded(self)

    def confirm_one(self, id: SubscriptionId) -> None:
        """One of the filters is in effect."""
        self.unconfirmed.discard(id)
        if not self.unconfirmed:
            self.confirm()


class ChannelEvents(EventIterator[ChannelEvent]):
    """The rows of a channel's results, for one choice of arguments."""

    def __init__(self, dispatch: EventDispatch, channel: str, arguments: dict[str, Value]) -> None:
        super().__init__(dispatch)
        self.channel = channel
        self.arguments = arguments
        self.id = ChannelSubscriptionId("")
        self.start: Position | None = None
        """The first execution whose rows are delivered, and the first row; None until it is in
        effect."""

    def _begin(self) -> None:
        self._dispatch.begin_channel(self)

    def _finish(self) -> None:
        self._dispatch.finish_channel(self)

    def _on_taken_while_crowded(self) -> None:
        self._dispatch.on_taken_while_crowded(self)
