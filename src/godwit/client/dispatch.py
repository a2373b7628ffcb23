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

from godwit.client.events import EVENTS_WAITING_MAX, ChannelEvent, ChannelEvents, Event, Events
from godwit.content.channel_messages import ChannelInEffect, ChannelResults, ChannelSubscriptionId
from godwit.content.messages import Publication, SubscriptionId
from godwit.matching.index import MatchingIndex

if TYPE_CHECKING:
    from godwit.client.client import Client


class EventDispatch:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._session = client.session
        self._events: dict[SubscriptionId, Events] = {}
        self._index: MatchingIndex[SubscriptionId] = MatchingIndex()
        self._only: Events | None = None
        self._was_unsubscribed = False
        self._channels: dict[ChannelSubscriptionId, ChannelEvents] = {}
        self._crowded: set[Events | ChannelEvents] = set()
        self._notices_awaited = 0

    # -- called by events ----------------------------------------------------------------------

    def begin(self, events: Events) -> None:
        self._client.check_open()
        events.ids = tuple(map(self._session.subscribe, events.filters))
        events.unconfirmed = set(events.ids)
        for id, filter in zip(events.ids, events.filters, strict=True):
            self._events[id] = events
            self._index.add(id, filter)
        self._find_only()
        self._client.flush_soon()

    def finish(self, events: Events) -> None:
        for id in events.ids:
            if self._events.pop(id, None) is not None:
                self._index.remove(id)
                self._session.unsubscribe(id)
        self._was_unsubscribed = True
        self._find_only()
        self._drop(events)

    def _find_only(self) -> None:
        """While there has been one subscription only, every publication is for it."""
        events = set(self._events.values())
        is_alone = len(events) == 1 and not self._was_unsubscribed
        self._only = events.pop() if is_alone else None

    def begin_channel(self, events: ChannelEvents) -> None:
        self._client.check_open()
        events.id = self._session.subscribe_channel(events.channel, events.arguments).id
        self._channels[events.id] = events
        self._client.flush_soon()

    def finish_channel(self, events: ChannelEvents) -> None:
        if self._channels.pop(events.id, None) is not None:
            self._session.unsubscribe_channel(events.id)
        self._drop(events)

    def _drop(self, events: Events | ChannelEvents) -> None:
        events.is_crowded = False
        self._crowded.discard(events)
        self._client.keep_pace()
        self._client.flush_soon()

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

    def _check_crowded(self, events: Events | ChannelEvents) -> None:
        if len(events.waiting) > EVENTS_WAITING_MAX:  # B1
            events.is_crowded = True
            self._crowded.add(events)
            self._client.keep_pace()

    def on_taken_while_crowded(self, events: Events | ChannelEvents) -> None:
        """The application has read an event."""
        if len(events.waiting) <= EVENTS_WAITING_MAX // 2:  # B1
            events.is_crowded = False
            self._crowded.discard(events)
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
        for events in {self._events[id] for id in self._index.match(publication.content)}:
            self._put(events, event)

    def _put(self, events: Events, event: Event) -> None:
        events.put(event)
        self._check_crowded(events)

    def deliver_results(self, results: ChannelResults) -> None:
        events = self._channels.get(results.id)
        if events is None:
            return
        for row, content in enumerate(results.rows, results.first):
            event = ChannelEvent(
                content, events.channel, results.execution, row, results.executed_s
            )
            events.put(event)
        self._check_crowded(events)

    def confirm(self, id: SubscriptionId) -> None:
        """A subscription is in effect."""
        events = self._events.get(id)
        if events is not None:
            events.confirm_one(id)

    def confirm_channel(self, notice: ChannelInEffect) -> None:
        events = self._channels.get(notice.id)
        if events is not None:
            events.start = events.start or notice.start
            events.confirm()

    def count_dropped(self, count: int) -> None:
        """The broker has dropped publications, for any of the subscriptions."""
        for events in set(self._events.values()):
            events.dropped += count

    def fail(self, about: str, error: Exception) -> bool:
        """The broker refused a subscription; False if it is none of these."""
        events = self._events.get(SubscriptionId(about)) or self._channels.get(
            ChannelSubscriptionId(about)
        )
        if events is None:
            return False
        events.fail(error)
        return True

    def fail_all(self, error: Exception) -> None:
        everything: set[Events | ChannelEvents] = {*self._events.values(), *self._channels.values()}
        for events in everything:
            events.fail(error)
