"""The asynchronous client.

    async with godwit.connect("godwit://127.0.0.1:7401") as client:
        await client.advertise("class = 'STOCK' and volume is present")
        await client.publish({"class": "STOCK", "volume": 400_000})
        async with client.subscribe("class = 'STOCK' and volume > 300000") as events:
            await events.in_effect()
            async for event in events: ...

The client keeps its connection by itself: when it is lost, it calls again and resumes its session
(line.py, session.py); the application notices a pause at most.  Publications wait in the client
while there is no connection, up to WAITING_BYTES_MAX; then `publish` waits too.

It also moves to another broker, with all that it holds, if it is told to by the application or by
its broker (moving.py); again the application notices a pause at most.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from types import TracebackType
from typing import Self, assert_never

from godwit.client.events import (
    EVENTS_WAITING_MAX,
    ChannelEvent,
    ChannelEvents,
    Event,
    Events,
)
from godwit.client.holdings import check_askable
from godwit.client.journey import Moved
from godwit.client.line import FALL_BACK_S, Guide, Line, Place
from godwit.client.moving import MOVE_S, Mover
from godwit.client.pinging import Pinger
from godwit.client.post import Arrived
from godwit.client.session import ClientSession
from godwit.content.channels import (
    ChannelInEffect,
    ChannelResults,
    ChannelSubscriptionId,
    check_arguments,
)
from godwit.content.filters import Filter
from godwit.content.messages import (
    AdvertisementId,
    AdvertisementInEffect,
    MoveTo,
    Paused,
    Publication,
    Refusal,
    SubscriptionId,
    SubscriptionInEffect,
    Swept,
)
from godwit.content.values import Value
from godwit.errors import GodwitError, RefusedError, UnreachableError, UsageError
from godwit.matching.index import MatchingIndex
from godwit.migration.moving import Phase
from godwit.wire.addresses import url_address
from godwit.wire.call import Opener, socket_opener
from godwit.wire.frames import Dropped, HowFar

#: Published and not taken in by the broker, at most; beyond that `publish` waits.
WAITING_BYTES_MAX = 1_048_576
#: Publications are written together, at the latest when they are this many bytes.
WRITE_BYTES = 65_536

CONNECT_S = 10.0


def connect(
    url: str,
    *,
    name: str | None = None,
    location: tuple[float, float] | None = None,
    connect_s: float = CONNECT_S,
    fall_back_s: float = FALL_BACK_S,
) -> Client:
    """A client of the broker at `url`, connected when it is entered with `async with`.

    `name` is unique in the network; without one, the client makes one up.  A client that has moved
    and cannot reach its broker for `fall_back_s` tries those where it was before, too.

    At `bcs+http://HOST:PORT` is a coordinator, which is asked for a broker, first when the client
    connects, then if that broker cannot be reached for `fall_back_s`.  It may make use of the
    `location`: latitude and longitude.
    """
    name = name or _made_up_name()
    home: str | Guide = url
    if url.startswith("bcs+"):
        from godwit.client.coordinated import guide  # noqa: PLC0415  Needs HTTP; few do.

        home = guide(url, name, location, _by_socket)
    return Client(home, resolve=_by_socket, name=name, connect_s=connect_s, fall_back_s=fall_back_s)


def _made_up_name() -> str:
    return f"client-{secrets.token_hex(6)}"


def _by_socket(url: str) -> Opener:
    return socket_opener(*url_address(url))


class _State(Enum):
    NEW = "was not connected yet"
    OPEN = "is open"
    CLOSED = "was closed"


class Client:
    def __init__(
        self,
        url: str | Guide,
        *,
        resolve: Callable[[str], Opener],
        name: str | None = None,
        connect_s: float = CONNECT_S,
        fall_back_s: float = FALL_BACK_S,
    ) -> None:
        """`resolve` tells how to get to the broker at an address."""
        self.name = name or _made_up_name()
        # Microseconds since 1970: a later session of the same name goes on above an earlier one.
        first = time.time_ns() // 1000
        self.session = ClientSession(self.name, first_sequence=first, first_serial=first)
        self.on_publication: Callable[[Publication, int], None] | None = None
        """Told each publication that arrives, with its hops, before subscriptions are."""
        home = url if isinstance(url, Guide) else Place(url, resolve(url))
        self.line = Line(self.session, [home], listener=self, fall_back_s=fall_back_s)
        self._mover = Mover(self, resolve)
        self._pinger = Pinger(self, resolve)
        self._connect_s = connect_s
        self._state = _State.NEW
        self._progress: asyncio.Future[None] | None = None
        self._awaited: dict[AdvertisementId, asyncio.Future[None]] = {}
        self._refusals: list[Refusal] = []
        self._feeds: dict[SubscriptionId, Events] = {}
        self._index: MatchingIndex[SubscriptionId] = MatchingIndex()
        self._only_feed: Events | None = None
        self._was_unsubscribed = False
        self._channels: dict[ChannelSubscriptionId, ChannelEvents] = {}
        self._crowded: set[Events | ChannelEvents] = set()
        self._listeners = 0

    @property
    def restarts(self) -> int:
        """How often the broker had forgotten this client; publications may be missing then."""
        return self.session.restarts

    async def __aenter__(self) -> Self:
        if self._state is not _State.NEW:
            raise UsageError("a client is used once; make another")
        await self.line.open(self._connect_s)
        self._state = _State.OPEN
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            await self.close()
        else:  # What went wrong already is what the caller should hear of.
            with contextlib.suppress(GodwitError):
                await self.close()

    async def close(self) -> None:
        """Let what was published leave, then end the session and all that it holds.

        Raises UnreachableError if the broker has not taken in everything within `connect_s`, and
        RefusedError if it refused a publication.
        """
        if self._state is not _State.OPEN:
            return
        trouble: GodwitError | None = None
        try:
            trouble = await self._last_flush()
        finally:  # Also if we are cancelled meanwhile.
            self._state = _State.CLOSED
            self._mover.close()
            self._pinger.close()
            await self.line.close()
            self._end_all()
        if trouble is not None:
            raise trouble

    def abort(self) -> None:
        """Be gone at once and without a word, as if the process had died."""
        self._state = _State.CLOSED
        self.line.abort()
        self._mover.abort()
        self._pinger.close()
        self._end_all()

    def _end_all(self) -> None:
        closed = UsageError("the client was closed")
        everything: set[Events | ChannelEvents] = {*self._feeds.values(), *self._channels.values()}
        for events in everything:
            events.fail(closed)
        for awaited in self._awaited.values():
            if not awaited.done():
                awaited.set_exception(closed)
        self.on_progress()

    async def _last_flush(self) -> GodwitError | None:
        """What went wrong, if something did."""
        if not self.session.has_published:  # All else ends with the session anyway.
            return None
        try:
            async with asyncio.timeout(self._connect_s):
                await self.flush()
        except TimeoutError:
            return UnreachableError("closed before all that was published was acknowledged")
        except GodwitError as error:
            return error
        return None

    # -- moving --------------------------------------------------------------------------------

    @property
    def move_phase(self) -> Phase | None:
        """How far the move is that is going on, if one is."""
        return self._mover.phase

    async def move(self, url: str, *, within_s: float = MOVE_S) -> Moved:
        """Move to the broker at `url`, with all that the client holds; return on arrival.

        StayedError says why not, if it is not there within `within_s`: then the client is where
        it was.  Either way nothing is lost, and nothing comes twice.
        """
        self._check_open()
        return await self._mover.move(url, within_s=within_s)

    def on_journey_over(self, left: Line) -> None:
        """Called when a move is over; `left` leads to the broker where the client is not."""
        self._mover.leave(left)
        self._keep_up()
        self.line.flush_soon()
        self.on_progress()

    # -- publishing ----------------------------------------------------------------------------

    async def advertise(self, filter: str | Filter) -> AdvertisementId:
        """Announce what will be published, and wait until that is in effect."""
        self._check_open()
        id = self.session.advertise(_parsed(filter))
        awaited = self._awaited[id] = asyncio.get_running_loop().create_future()
        self.line.flush_soon()
        try:
            with self.listening():
                await awaited
        except asyncio.CancelledError:  # Nobody will ever know its id.
            self.session.unadvertise(id)
            self.line.flush_soon()
            raise
        finally:
            del self._awaited[id]
        return id

    async def unadvertise(self, id: AdvertisementId) -> None:
        """Withdraw an advertisement, after what was published under it."""
        self._check_open()
        await self._until(lambda: not self.session.is_used(id))
        self.session.unadvertise(id)
        self.line.flush_soon()

    async def publish(self, record: Mapping[str, Value], *, payload: bytes = b"") -> None:
        """Publish a record under the advertisement that permits it.

        Returns when the publication is on its way, or will be once there is a connection; waits
        while too much is not acknowledged.  `flush` waits for that.
        """
        self._check_open()
        session = self.session
        session.publish(record, payload)
        if session.stream.pending_bytes < WRITE_BYTES:
            self.line.flush_soon()
            if not session.held_bytes:
                return
        else:
            self.line.flush()
            await asyncio.sleep(0)
        if session.waiting_bytes > WAITING_BYTES_MAX:
            await self._until(lambda: session.waiting_bytes <= WAITING_BYTES_MAX // 2)

    async def flush(self) -> None:
        """Wait until all that was asked and published so far is acknowledged.

        A publication is when the subscribers have it, or brokers keep it for those that are away:
        from then on no single failure can lose it.  Raises RefusedError if the broker refused one
        since the last time.
        """
        self.line.flush()
        await self._until(lambda: self.session.is_idle)
        if self._refusals:
            refusals, self._refusals = self._refusals, []
            raise RefusedError(f"{refusals[0].about}: {refusals[0].reason}")

    async def _until(self, done: Callable[[], bool]) -> None:
        while not done():
            self._check_open()
            if self._progress is None:
                self._progress = asyncio.get_running_loop().create_future()
            with self.listening() if self.session.held_bytes else contextlib.nullcontext():
                await asyncio.shield(self._progress)

    def _check_open(self) -> None:
        if self._state is not _State.OPEN:
            raise UsageError(f"the client {self._state.value}; use it inside `async with`")

    # -- subscribing ---------------------------------------------------------------------------

    def subscribe(self, *filters: str | Filter) -> Events:
        """What any of the filters matches, each publication once; to be entered with `async with`.

        Other clients' publications only: nobody hears himself.
        """
        if not filters:
            raise UsageError("subscribe to at least one filter")
        parsed = tuple(map(_parsed, filters))
        for filter in parsed:  # Before the first of them is asked for.
            check_askable(filter)
        return Events(self, parsed)

    def begin(self, events: Events) -> None:
        """Called by events that are entered."""
        self._check_open()
        events.ids = tuple(map(self.session.subscribe, events.filters))
        events.unconfirmed = set(events.ids)
        for id, filter in zip(events.ids, events.filters, strict=True):
            self._feeds[id] = events
            self._index.add(id, filter)
        self._find_only_feed()
        self.line.flush_soon()

    def finish(self, events: Events) -> None:
        """Called by events that are left."""
        for id in events.ids:
            if self._feeds.pop(id, None) is not None:
                self._index.remove(id)
                self.session.unsubscribe(id)
        self._was_unsubscribed = True
        self._find_only_feed()
        self._crowded.discard(events)
        self._keep_up()
        if self._state is _State.OPEN:
            self.line.flush_soon()

    def _find_only_feed(self) -> None:
        """While there has been one only, all that arrives is for it."""
        feeds = set(self._feeds.values())
        is_alone = len(feeds) == 1 and not self._was_unsubscribed
        self._only_feed = feeds.pop() if is_alone else None

    def subscribe_channel(self, channel: str, /, **arguments: Value) -> ChannelEvents:
        """The results of a channel for these arguments; to be entered with `async with`."""
        return ChannelEvents(self, channel, check_arguments(arguments))

    def begin_channel(self, events: ChannelEvents) -> None:
        """Called by events that are entered."""
        self._check_open()
        events.id = self.session.subscribe_channel(events.channel, events.arguments).id
        self._channels[events.id] = events
        self.line.flush_soon()

    def finish_channel(self, events: ChannelEvents) -> None:
        """Called by events that are left."""
        if self._channels.pop(events.id, None) is not None:
            self.session.unsubscribe_channel(events.id)
        self._crowded.discard(events)
        self._keep_up()
        if self._state is _State.OPEN:
            self.line.flush_soon()

    def on_taken(self, events: Events | ChannelEvents) -> None:
        """Called by events that an application has read from."""
        if events in self._crowded and len(events.waiting) <= EVENTS_WAITING_MAX // 2:
            self._crowded.discard(events)
            self._keep_up()

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Wait for a notice: it comes behind the events, so do not be behind with those."""
        self._listeners += 1
        self._keep_up()
        try:
            yield
        finally:
            self._listeners -= 1
            self._keep_up()

    def _keep_up(self) -> None:
        self.line.fall_behind(bool(self._crowded) and not self._listeners)

    # -- what comes over the line --------------------------------------------------------------

    def on_arrived(self, frame: Arrived, hops: int) -> None:
        if isinstance(frame, Publication):
            self._on_publication(frame, hops)
            return
        match frame:
            case SubscriptionInEffect(id=id):
                if id in self._feeds:
                    self._feeds[id].confirm_one(id)
            case AdvertisementInEffect(id=id):
                if id in self._awaited and not self._awaited[id].done():
                    self._awaited[id].set_result(None)
                self._mover.on_old(frame)
                self.on_progress()
            case Swept() | Paused():
                self._mover.on_old(frame)
            case MoveTo():
                self._mover.on_asked(frame)
            case HowFar():
                self._pinger.on_asked(frame)
            case ChannelInEffect(id=channel_id, start=start):
                results = self._channels.get(channel_id)
                if results is not None:
                    results.start = results.start or start
                    results.confirm()
            case ChannelResults():
                self._on_results(frame)
            case Refusal():
                self._on_refusal(frame)
            case Dropped(count=count):
                for events in set(self._feeds.values()):
                    events.dropped += count
            case _:
                assert_never(frame)

    def _on_publication(self, publication: Publication, hops: int) -> None:
        if self.on_publication is not None:
            self.on_publication(publication, hops)
        event = Event(
            publication.content,
            publication.payload,
            publication.publisher,
            publication.sequence,
            hops,
            publication.accepted_s,
        )
        if self._only_feed is not None:
            self._put(self._only_feed, event)
            return
        # A client gets one copy; which of its subscriptions want it is for us to say.
        for events in {self._feeds[id] for id in self._index.match(publication.content)}:
            self._put(events, event)

    def _on_results(self, results: ChannelResults) -> None:
        events = self._channels.get(results.id)
        if events is None:
            return
        for row, content in enumerate(results.rows, results.first):
            event = ChannelEvent(
                content, events.channel, results.execution, row, results.executed_s
            )
            events.put(event)
        self._check_crowded(events)

    def _put(self, events: Events, event: Event) -> None:
        events.put(event)
        self._check_crowded(events)

    def _check_crowded(self, events: Events | ChannelEvents) -> None:
        if len(events.waiting) > EVENTS_WAITING_MAX:
            self._crowded.add(events)
            self._keep_up()

    def _on_refusal(self, refusal: Refusal) -> None:
        error = RefusedError(f"{refusal.about}: {refusal.reason}")
        awaited = self._awaited.get(AdvertisementId(refusal.about))
        events = self._feeds.get(SubscriptionId(refusal.about)) or self._channels.get(
            ChannelSubscriptionId(refusal.about)
        )
        if awaited is not None:
            if not awaited.done():
                awaited.set_exception(error)
        elif events is not None:
            events.fail(error)
        else:
            self._refusals.append(refusal)
        self.on_progress()

    def on_progress(self) -> None:
        self._mover.on_progress()
        if self._progress is not None:
            self._progress.set_result(None)
            self._progress = None


def _parsed(filter: str | Filter) -> Filter:
    return Filter.parse(filter) if isinstance(filter, str) else filter
