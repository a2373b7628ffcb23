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

from godwit.client.inbox import ChannelEvent, ChannelInbox, E, Event, FilterInbox, Inbox
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
        self._inbox: Inbox[E] | None = None
        self._is_entered = False

    @abstractmethod
    def _subscribe(self) -> Inbox[E]: ...

    def _begun(self) -> Inbox[E]:
        """The inbox; the subscription begins with the first call (V1)."""
        inbox = self._inbox
        if inbox is None:
            inbox = self._inbox = self._subscribe()
        return inbox

    async def __aenter__(self) -> Self:
        if self._is_entered or (self._inbox is not None and self._inbox.error is not None):
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
        inbox = getattr(self, "_inbox", None)  # None if the constructor failed.
        if inbox is not None and inbox.error is None and not self._is_entered:
            with contextlib.suppress(RuntimeError):  # The loop is closed, and the client with it.
                inbox.loop.call_soon_threadsafe(self._dispatch.finish, inbox)

    @property
    def waiting(self) -> Collection[E]:
        """Events that have arrived and were not taken yet."""
        return () if self._inbox is None else self._inbox.waiting

    async def in_effect(self) -> None:
        """Return when everything that was subscribed to is delivered from now on.

        Raises RefusedError if the subscription is refused or was ended.
        """
        inbox = self._begun()
        with self._dispatch.awaiting_notice():
            await inbox.in_effect()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> E:
        inbox = self._inbox or self._begun()
        while not inbox.waiting:
            await inbox.arrival()
        event = inbox.waiting.popleft()
        if inbox.is_crowded:
            self._dispatch.on_taken_while_crowded(inbox)
        return event


class Events(EventIterator[Event]):
    """Publications that any of the filters matches."""

    _inbox: FilterInbox | None

    def __init__(self, dispatch: EventDispatch, filters: tuple[Filter, ...]) -> None:
        super().__init__(dispatch)
        self.filters = filters

    def _subscribe(self) -> FilterInbox:
        return self._dispatch.begin(self.filters)

    @property
    def ids(self) -> tuple[SubscriptionId, ...]:
        """Of each filter; empty until the subscription has begun."""
        return () if self._inbox is None else tuple(self._inbox.ids)

    @property
    def dropped(self) -> int:
        """Publications to this client that the broker could not keep, because the client was too
        slow or away for too long.  They may or may not have been for this subscription.
        """
        return 0 if self._inbox is None else self._inbox.dropped


class ChannelEvents(EventIterator[ChannelEvent]):
    """The rows of a channel's results, for one choice of arguments."""

    _inbox: ChannelInbox | None

    def __init__(self, dispatch: EventDispatch, channel: str, arguments: dict[str, Value]) -> None:
        super().__init__(dispatch)
        self.channel = channel
        self.arguments = arguments

    def _subscribe(self) -> ChannelInbox:
        return self._dispatch.begin_channel(self.channel, self.arguments)

    @property
    def start(self) -> Position | None:
        """The first execution whose rows are delivered, and the first row; None until it is in
        effect.
        """
        return None if self._inbox is None else self._inbox.start
