"""What a subscription delivers: an asynchronous iterator that can say when it is in effect.

A subscription to filters delivers publications, one to a channel the rows of its results.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

import msgspec

from godwit.content.channels import ChannelSubscriptionId, Position
from godwit.content.filters import Filter
from godwit.content.messages import SubscriptionId
from godwit.content.values import Value

#: Events that wait for the application; with more, the client confirms nothing to its broker.
EVENTS_WAITING_MAX = 10_000


class Event(msgspec.Struct, frozen=True):
    """One publication as a subscriber sees it."""

    content: dict[str, Value]
    payload: bytes
    publisher: str
    sequence: int
    hops: int
    """Overlay links between the publisher's broker and ours."""

    accepted_s: float
    """When the publisher's broker took responsibility for it, in seconds since 1970."""


class ChannelEvent(msgspec.Struct, frozen=True):
    """One row of the results of a channel."""

    content: dict[str, Value]
    channel: str
    execution: int
    row: int
    """Its number among those that this execution had for the subscription."""

    executed_s: float
    """When the execution began, in seconds since 1970."""


E = TypeVar("E", Event, ChannelEvent)


class Subscriber(Protocol):
    """The part of a client that its events need."""

    def begin(self, events: Events) -> None: ...

    def begin_channel(self, events: ChannelEvents) -> None: ...

    def finish(self, events: Events) -> None: ...

    def finish_channel(self, events: ChannelEvents) -> None: ...

    def on_taken(self, events: Events | ChannelEvents) -> None: ...

    def listening(self) -> AbstractContextManager[None]: ...


class Arrivals(ABC, Generic[E]):
    """`async with client.subscribe(...) as events: async for event in events: ...`"""

    def __init__(self, subscriber: Subscriber) -> None:
        self.waiting: deque[E] = deque()
        self._subscriber = subscriber
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
    def _on_taken(self) -> None: ...

    async def in_effect(self) -> None:
        """Return when everything that is asked for will be delivered from now on."""
        assert self._in_effect is not None, "use `async with client.subscribe(...)`"
        with self._subscriber.listening():
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
        self._on_taken()
        return event

    # -- called by the client ------------------------------------------------------------------

    def put(self, event: E) -> None:
        self.waiting.append(event)
        self._awake()

    def confirm(self) -> None:
        if self._in_effect is not None and not self._in_effect.done():
            self._in_effect.set_result(None)

    def fail(self, error: Exception) -> None:
        """The broker refused the subscription, or the client was closed."""
        if self._in_effect is not None and not self._in_effect.done():
            self._in_effect.set_exception(error)
            self._in_effect.exception()  # Whoever waits is told; nobody has to.
        self.end()

    def end(self) -> None:
        """No more events will come; those that wait may still be read."""
        self._is_over = True
        self._awake()

    def _awake(self) -> None:
        if self._wake is not None:
            if not self._wake.done():
                self._wake.set_result(None)
            self._wake = None


class Events(Arrivals[Event]):
    """Publications that any of the filters matches."""

    def __init__(self, subscriber: Subscriber, filters: tuple[Filter, ...]) -> None:
        super().__init__(subscriber)
        self.filters = filters
        self.ids: tuple[SubscriptionId, ...] = ()
        self.dropped = 0
        """Publications to this client that the broker could not keep: it was too slow, or away
        for too long.  They may or may not have been for this subscription."""
        self.unconfirmed: set[SubscriptionId] = set()

    def _begin(self) -> None:
        self._subscriber.begin(self)

    def _finish(self) -> None:
        self._subscriber.finish(self)

    def _on_taken(self) -> None:
        self._subscriber.on_taken(self)

    def confirm_one(self, id: SubscriptionId) -> None:
        self.unconfirmed.discard(id)
        if not self.unconfirmed:
            self.confirm()


class ChannelEvents(Arrivals[ChannelEvent]):
    """The rows of a channel's results, for one choice of arguments."""

    def __init__(self, subscriber: Subscriber, channel: str, arguments: dict[str, Value]) -> None:
        super().__init__(subscriber)
        self.channel = channel
        self.arguments = arguments
        self.id = ChannelSubscriptionId("")
        self.start: Position | None = None
        """The first execution whose rows are delivered, and row; once it is in effect."""

    def _begin(self) -> None:
        self._subscriber.begin_channel(self)

    def _finish(self) -> None:
        self._subscriber.finish_channel(self)

    def _on_taken(self) -> None:
        self._subscriber.on_taken(self)
