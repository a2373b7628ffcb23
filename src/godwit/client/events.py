"""What a subscription delivers: an asynchronous iterator that can say when it is in effect."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Protocol, Self

import msgspec

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


class Subscriber(Protocol):
    """The part of a client that its events need."""

    def begin(self, events: Events) -> None: ...

    def finish(self, events: Events) -> None: ...

    def on_taken(self, events: Events) -> None: ...

    def listening(self) -> AbstractContextManager[None]: ...


class Events:
    """`async with client.subscribe(...) as events: async for event in events: ...`"""

    def __init__(self, subscriber: Subscriber, filters: tuple[Filter, ...]) -> None:
        self.filters = filters
        self.ids: tuple[SubscriptionId, ...] = ()
        self.dropped = 0
        """Publications to this client that the broker could not keep: it was too slow, or away
        for too long.  They may or may not have been for this subscription."""
        self.waiting: deque[Event] = deque()
        self.unconfirmed: set[SubscriptionId] = set()
        self._subscriber = subscriber
        self._in_effect: asyncio.Future[None] | None = None
        self._wake: asyncio.Future[None] | None = None
        self._is_over = False

    async def __aenter__(self) -> Self:
        self._in_effect = asyncio.get_running_loop().create_future()
        self._subscriber.begin(self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._subscriber.finish(self)
        self.end()

    async def in_effect(self) -> None:
        """Return when every matching publication from now on will be delivered."""
        assert self._in_effect is not None, "use `async with client.subscribe(...)`"
        with self._subscriber.listening():
            await asyncio.shield(self._in_effect)

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> Event:
        while not self.waiting:
            if self._is_over:
                raise StopAsyncIteration
            if self._wake is None:
                self._wake = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._wake)
        event = self.waiting.popleft()
        self._subscriber.on_taken(self)
        return event

    # -- called by the client ------------------------------------------------------------------

    def put(self, event: Event) -> None:
        self.waiting.append(event)
        self._awake()

    def confirm(self, id: SubscriptionId) -> None:
        self.unconfirmed.discard(id)
        if not self.unconfirmed and self._in_effect is not None and not self._in_effect.done():
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
