"""The subscriptions of a client: which events go to which of them, and whether they keep up.

A client receives one copy of a publication; an index over the filters of its subscriptions finds
those that it is for.

B1  While more events wait in a subscription than EVENTS_WAITING_MAX, the client is behind: it
    acknowledges nothing, and the broker stops at a full window.  It has caught up at half of that.
B2  A client that awaits a notice is not behind: the notice follows the events.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from godwit.client.event_queue import (
    AnyQueue,
    ChannelEvent,
    ChannelQueue,
    Event,
    EventQueue,
    FilterQueue,
)
from godwit.content.channel_messages import ChannelInEffect, ChannelResults, ChannelSubscriptionId
from godwit.content.filters import Filter
from godwit.content.messages import Publication, SubscriptionId
from godwit.content.values import Value
from godwit.errors import GodwitError, UsageError
from godwit.matching.index import MatchingIndex

if TYPE_CHECKING:
    from godwit.client.client import Client

#: Events that wait for the application; with more, the client acknowledges nothing.
EVENTS_WAITING_MAX = 10_000


class EventDispatch:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._session = client.session
        self._queues: dict[SubscriptionId, FilterQueue] = {}
        self._index: MatchingIndex[SubscriptionId] = MatchingIndex()
        self._only: FilterQueue | None = None
        self._was_unsubscribed = False
        self._channels: dict[ChannelSubscriptionId, ChannelQueue] = {}
        self._crowded: set[EventQueue[Event] | EventQueue[ChannelEvent]] = set()
        self._notices_awaited = 0

    # -- called by events ----------------------------------------------------------------------

    def begin(self, filters: tuple[Filter, ...], *, local_only: bool = False) -> FilterQueue:
        self._client.check_open()
        ids = tuple(self._session.subscribe(each, local_only=local_only) for each in filters)
        queue = FilterQueue(filters, ids)
        for id, filter in zip(ids, filters, strict=True):
            self._queues[id] = queue
            self._index.add(id, filter)
        self._find_only()
        self._client.flush_soon()
        return queue

    def begin_channel(self, channel: str, arguments: dict[str, Value]) -> ChannelQueue:
        self._client.check_open()
        id = self._session.subscribe_channel(channel, arguments).id
        queue = self._channels[id] = ChannelQueue(channel, id)
        self._client.flush_soon()
        return queue

    def finish(self, queue: EventQueue[Event] | EventQueue[ChannelEvent]) -> None:
        """The application has ended a subscription."""
        queue.end(UsageError("the subscription has ended; subscribe again"))
        if isinstance(queue, FilterQueue):
            self._remove(queue)
        elif isinstance(queue, ChannelQueue) and self._channels.pop(queue.id, None) is not None:
            self._session.unsubscribe_channel(queue.id)
        queue.is_crowded = False
        self._crowded.discard(queue)
        self._client.keep_pace()
        self._client.flush_soon()

    def _remove(self, queue: FilterQueue) -> None:
        for id in queue.ids:
            if self._queues.pop(id, None) is not None:
                self._index.remove(id)
                self._session.unsubscribe(id)
        self._was_unsubscribed = True
        self._find_only()

    def _find_only(self) -> None:
        """While there has been one subscription only, every publication is for it."""
        queues = set(self._queues.values())
        is_alone = len(queues) == 1 and not self._was_unsubscribed
        self._only = queues.pop() if is_alone else None

    # -- pace ----------------------------------------------------------------------------------

    @property
    def is_behind(self) -> bool:
        """Whether the client should acknowledge nothing for now."""
        return bool(self._crowded) and not self._notices_awaited  # B2

    @contextlib.contextmanager
    def awaiting_notice(self) -> Iterator[None]:
        """Wait for a notice of the broker (B2)."""
        self._notices_awaited += 1
        self._client.keep_pace()
        try:
            yield
        finally:
            self._notices_awaited -= 1
            self._client.keep_pace()

    def _check_crowded(self, queue: AnyQueue) -> None:
        if len(queue.waiting) > EVENTS_WAITING_MAX:  # B1
            queue.is_crowded = True
            self._crowded.add(queue)
            self._client.keep_pace()

    def on_taken_while_crowded(self, queue: EventQueue[Event] | EventQueue[ChannelEvent]) -> None:
        """The application has read an event."""
        if len(queue.waiting) <= EVENTS_WAITING_MAX // 2:  # B1
            queue.is_crowded = False
            self._crowded.discard(queue)
            self._client.keep_pace()

    # -- called by the client ------------------------------------------------------------------

    def deliver(self, publication: Publication, hops: int) -> None:
        event = Event(
            publication.content,
            publication.payload,
            publication.publisher,
            publication.sequence,
            hops,
            publication.accepted_s,
        )
        if self._only is not None:
            self._put(self._only, event)
            return
        for queue in {self._queues[id] for id in self._index.match(publication.content)}:
            self._put(queue, event)

    def _put(self, queue: FilterQueue, event: Event) -> None:
        queue.put(event)
        self._check_crowded(queue)

    def deliver_results(self, results: ChannelResults) -> None:
        queue = self._channels.get(results.id)
        if queue is None:
            return
        for row, content in enumerate(results.rows, results.first):
            queue.put(
                ChannelEvent(content, queue.channel, results.execution, row, results.executed_s)
            )
        self._check_crowded(queue)

    def confirm(self, id: SubscriptionId) -> None:
        """A subscription is in effect."""
        queue = self._queues.get(id)
        if queue is not None:
            queue.confirm_one(id)

    def confirm_channel(self, notice: ChannelInEffect) -> None:
        queue = self._channels.get(notice.id)
        if queue is not None:
            queue.begin(notice.start)

    def count_dropped(self, count: int) -> None:
        """The broker has dropped publications, for any of the subscriptions."""
        for queue in set(self._queues.values()):
            queue.dropped += count

    def fail(self, about: str, reason: str) -> bool:
        """The broker refused a subscription, or ended it; False if it is none of these."""
        queue = self._queues.get(SubscriptionId(about)) or self._channels.get(
            ChannelSubscriptionId(about)
        )
        if queue is None:
            return False
        queue.fail(reason)
        self.finish(queue)  # Of several filters, those that were not refused end as well.
        return True

    def fail_all(self, error: GodwitError) -> None:
        """The client is closed; nothing more follows."""
        queues: set[AnyQueue] = {*self._queues.values(), *self._channels.values()}
        for queue in queues:
            queue.end(error)
