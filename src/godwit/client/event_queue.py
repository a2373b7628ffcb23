"""What has arrived for one subscription, and how the subscription ended.

The client keeps a queue while the subscription lasts; the application has the iterator that reads
from it (events.py).  So a subscription can end when the application has dropped the iterator.

X1  A queue that is over has an error: what a caller is told who waits for more.  If the
    application itself ended the subscription, it is a UsageError, and an iteration just stops.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from copy import copy
from typing import Generic, TypeAlias, TypeVar

import msgspec

from godwit.content.channel_messages import ChannelSubscriptionId, Position
from godwit.content.filters import Filter
from godwit.content.messages import SubscriptionId
from godwit.content.values import Value
from godwit.errors import EndedError, GodwitError, RefusedError, UsageError


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


class EventQueue(Generic[E]):
    """Made in a running event loop."""

    def __init__(self) -> None:
        self.waiting: deque[E] = deque()
        """Events that the application has not taken yet."""
        self.is_crowded = False
        """More than EVENTS_WAITING_MAX have been waiting, and half of that still are."""
        self.loop = asyncio.get_running_loop()
        self.error: GodwitError | None = None
        """X1."""
        self._in_effect: asyncio.Future[None] = self.loop.create_future()
        self._arrival: asyncio.Future[None] | None = None

    @property
    def subject(self) -> str:
        """What was subscribed to."""
        raise NotImplementedError

    async def in_effect(self) -> None:
        """Return when the subscription is in effect, or raise the error with which it ended."""
        if self.error is None:
            await asyncio.shield(self._in_effect)
        if self.error is not None:
            raise copy(self.error)  # One for each caller: they collect tracebacks.

    async def arrival(self) -> None:
        """Return when there is an event; raise the error, or stop, if there will be none."""
        if self.error is not None:
            if isinstance(self.error, UsageError):
                raise StopAsyncIteration
            raise copy(self.error)  # One for each caller: they collect tracebacks.
        if self._arrival is None:
            self._arrival = self.loop.create_future()
        await asyncio.shield(self._arrival)  # A caller that is cancelled may come back.

    def put(self, event: E) -> None:
        self.waiting.append(event)
        if self._arrival is not None:
            self._wake_up()

    def confirm(self) -> None:
        """The subscription is in effect."""
        if not self._in_effect.done():
            self._in_effect.set_result(None)

    def fail(self, reason: str) -> None:
        """The broker has refused the subscription, or ended it."""
        if self._in_effect.done():
            self.end(EndedError(f"the subscription to {self.subject} was ended: {reason}"))
        else:
            self.end(RefusedError(f"the subscription to {self.subject} was refused: {reason}"))

    def end(self, error: GodwitError) -> None:
        """No more events will follow; those that wait may be read.  The first error counts."""
        if self.error is None:
            self.error = error
            self.confirm()  # Wakes those who wait; they find the error.
            self._wake_up()

    def _wake_up(self) -> None:
        if self._arrival is not None:
            if not self._arrival.done():
                self._arrival.set_result(None)
            self._arrival = None


class FilterQueue(EventQueue[Event]):
    def __init__(self, filters: Sequence[Filter], ids: Sequence[SubscriptionId]) -> None:
        super().__init__()
        self.filters = filters
        self.ids = ids
        self.dropped = 0
        self._unconfirmed = set(ids)

    @property
    def subject(self) -> str:
        return " or ".join(map(str, self.filters))

    def confirm_one(self, id: SubscriptionId) -> None:
        """One of the filters is in effect."""
        self._unconfirmed.discard(id)
        if not self._unconfirmed:
            self.confirm()


class ChannelQueue(EventQueue[ChannelEvent]):
    def __init__(self, channel: str, id: ChannelSubscriptionId) -> None:
        super().__init__()
        self.channel = channel
        self.id = id
        self.start: Position | None = None

    @property
    def subject(self) -> str:
        return f"channel {self.channel}"

    def begin(self, start: Position) -> None:
        """It is in effect, from this position on; the first one counts."""
        self.start = self.start or start
        self.confirm()


AnyQueue: TypeAlias = FilterQueue | ChannelQueue
