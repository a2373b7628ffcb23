"""The asynchronous client.

    async with godwit.connect("godwit://127.0.0.1:7401") as client:
        await client.advertise("class = 'STOCK' and volume is present")
        await client.publish({"class": "STOCK", "volume": 400_000})
        async with client.subscribe("class = 'STOCK' and volume > 300000") as events:
            await events.in_effect()
            async for event in events: ...

The client reconnects by itself and resumes its session (broker_connection.py, client_session.py);
the application notices a pause at most.  While there is no connection, publications wait in the
client, up to WAITING_BYTES_MAX; then `publish` waits too.

It also moves to another broker, with everything that it holds, when the application or its broker
requests that (mover.py); again the application notices a pause at most.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from copy import copy
from enum import Enum
from types import TracebackType
from typing import Self, assert_never

from godwit.client.broker_connection import (
    FALL_BACK_S,
    BrokerConnection,
    BrokerFinder,
    BrokerPlace,
    new_incarnation,
)
from godwit.client.client_session import ClientSession
from godwit.client.dispatch import EventDispatch
from godwit.client.events import ChannelEvents, Events
from godwit.client.gaps import Gaps
from godwit.client.holdings import check_askable
from godwit.client.live_move import Moved
from godwit.client.mover import MOVE_S, Mover
from godwit.client.readiness import Readiness
from godwit.client.round_trips import Pinger
from godwit.client.stream_endpoint import ClaimedName, NumberedFrame
from godwit.content.channel_messages import ChannelInEffect, ChannelResults, check_arguments
from godwit.content.filters import Filter
from godwit.content.link_messages import NetworkStatus
from godwit.content.messages import (
    AdvertisementId,
    AdvertisementInEffect,
    GapNotice,
    MoveTo,
    Paused,
    Publication,
    Refusal,
    SubscriptionId,
    SubscriptionInEffect,
    Swept,
)
from godwit.content.values import Value
from godwit.errors import (
    GodwitError,
    RefusedError,
    TakenOverError,
    UnreachableError,
    UsageError,
)
from godwit.migration.move import Phase
from godwit.protocol.call import Opener
from godwit.protocol.frames import Dropped, MeasureRoundTrips

#: Published and not acknowledged by the broker, at most; beyond that `publish` waits.
WAITING_BYTES_MAX = 1_048_576
#: Publications are written together, at the latest when they are this many bytes.
WRITE_BYTES = 65_536

CONNECT_S = 10.0


def random_name() -> str:
    return f"client-{secrets.token_hex(6)}"


class _State(Enum):
    NEW = "the client is not connected yet: use it inside `async with`"
    OPENING = "the client is still connecting: wait until `async with` has entered it"
    OPEN = "the client is open"
    CLOSED = "the client was closed: make another one with godwit.connect()"


class Client:
    def __init__(
        self,
        *homes: str | BrokerFinder,
        resolve: Callable[[str], Opener],
        name: str | None = None,
        incarnation: str | None = None,
        take_over: bool = False,
        connect_s: float = CONNECT_S,
        fall_back_s: float = FALL_BACK_S,
    ) -> None:
        """`homes` are tried in order; `resolve` makes the opener for a broker's address.

        `incarnation` tells this start from others of the same name; by default it is random.  It is
        empty for a name that was drawn at random, which no other client has.
        """
        self.name = name or random_name()
        if incarnation is None:
            incarnation = new_incarnation() if name else ""
        if take_over and not incarnation:
            raise UsageError("take_over=True needs a name: say whose session ends, name=...")
        claimed = ClaimedName(incarnation, take_over) if incarnation else None
        self.session = ClientSession(self.name, incarnation=incarnation, claimed=claimed)
        self.on_publication: Callable[[Publication, int], None] | None = None
        """Called with each new publication and its hops, before subscriptions receive it."""
        places = [
            home if isinstance(home, BrokerFinder) else BrokerPlace(home, resolve(home))
            for home in homes
        ]
        self.broker_connection = BrokerConnection(
            self.session, places, listener=self, fall_back_s=fall_back_s
        )
        self.gaps = Gaps()
        """What this client learns of publications that did not arrive, or may not have."""
        self.session.on_missed = self._on_missed
        self._generation = 0
        self._lapsed: set[SubscriptionId] = set()
        """Subscriptions that the broker had forgotten, and that are not in effect again."""
        self._dispatch = EventDispatch(self)
        self._mover = Mover(self, resolve)
        self._pinger = Pinger(self, resolve)
        self._readiness = Readiness(self)
        self._connect_s = connect_s
        self._state = _State.NEW
        self._progress: asyncio.Future[None] | None = None
        self._awaited: dict[AdvertisementId, asyncio.Future[None]] = {}
        self._refusals: list[Refusal] = []
        self._ended: GodwitError | None = None
        """Why the session was ended, unless the application has closed the client."""
        self._has_told_loss = False

    @property
    def restarts(self) -> int:
        """How often the broker had forgotten this client; publications may be missing then."""
        return self.session.restarts

    async def __aenter__(self) -> Self:
        if self._state is not _State.NEW:
            raise UsageError("a client can be entered once; make another one with godwit.connect()")
        self._state = _State.OPENING
        try:
            await self.broker_connection.open(self._connect_s)
        except BaseException:
            self._state = _State.CLOSED
            self._end_all()
            raise
        self._check_not_closed()  # Another task may have closed it meanwhile.
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
        else:  # The error that is being raised is the one that matters.
            with contextlib.suppress(GodwitError):
                await self.close()

    async def close(self) -> None:
        """Send what was published, then end the session and everything that it holds.

        Raises UnreachableError if the broker has not acknowledged everything within `connect_s`,
        RefusedError if it refused a publication, and EndedError if the broker has ended the
        session before it had acknowledged everything.
        """
        if self._state is not _State.OPEN:
            await self._close_unopened()
            return
        trouble: GodwitError | None = None
        try:
            trouble = await self._last_flush()
        finally:  # Also if this task is cancelled meanwhile.
            self._state = _State.CLOSED
            self._mover.close()
            self._pinger.close()
            await self.broker_connection.close()
            self._end_all()
        if trouble is not None:
            raise trouble

    async def _close_unopened(self) -> None:
        if self._state is not _State.CLOSED:
            self._state = _State.CLOSED
            await self.broker_connection.close()
            self._end_all()
        elif self._ended is not None and self.session.unacknowledged and not self._has_told_loss:
            self._has_told_loss = True
            raise copy(self._ended)

    def abort(self) -> None:
        """Disconnect at once and without notice, as if the process had died."""
        self._state = _State.CLOSED
        self.broker_connection.abort()
        self._mover.abort()
        self._pinger.close()
        self._end_all()

    def end(self, error: GodwitError) -> None:
        """The broker has ended the session: everything that waits, and every later call, raises."""
        if self._state is not _State.CLOSED:
            self._ended = error
            self.abort()

    def _end_all(self) -> None:
        error = self._ended or UsageError(_State.CLOSED.value)
        self.gaps.close(self._ended)
        self._dispatch.fail_all(error)
        for awaited in self._awaited.values():
            if not awaited.done():
                awaited.set_exception(copy(error))
        self.on_progress()

    def on_taken_over(self, error: TakenOverError) -> None:
        """Another client has the name of this one."""
        self.end(TakenOverError(f"the client {self.name} has ended: {error}"))

    async def _last_flush(self) -> GodwitError | None:
        """The error to raise, if any."""
        if not self.session.has_published:  # Everything else ends with the session anyway.
            return None
        try:
            async with asyncio.timeout(self._connect_s):
                await self.flush()
        except TimeoutError:
            connection = self.broker_connection
            reason = f" ({connection.trouble})" if connection.connection is None else ""
            return UnreachableError(
                f"closed before the broker had acknowledged all publications{reason}"
            )
        except GodwitError as error:
            return error
        return None

    def check_open(self) -> None:
        """Raise the reason why the client cannot be used now, if there is one."""
        if self._state is not _State.OPEN:
            self._check_not_closed()
            raise UsageError(self._state.value)

    def _check_not_closed(self) -> None:
        if self._state is _State.CLOSED:
            # A copy for each caller: one that is raised twice collects the tracebacks of both.
            raise UsageError(self._state.value) if self._ended is None else copy(self._ended)

    def flush_soon(self) -> None:
        """Send what is pending, in the next turn of the event loop."""
        if self._state is not _State.CLOSED:
            self.broker_connection.flush_soon()

    # -- the network ---------------------------------------------------------------------------

    async def ready(self, timeout_s: float | None = None) -> None:
        """Wait until the network is complete: all configured links are up, and have told all.

        Raises NotReadyError after `timeout_s`; its `missing` names the brokers that are not there.
        """
        await self._readiness.ready(timeout_s)

    async def status(self) -> NetworkStatus:
        """Ask the broker which part of the network is missing, without waiting for it."""
        return await self._readiness.status()

    # -- moving --------------------------------------------------------------------------------

    @property
    def move_phase(self) -> Phase | None:
        """The phase of the current move, if there is one."""
        return self._mover.phase

    async def move(self, url: str, *, within_s: float = MOVE_S) -> Moved:
        """Move to the broker at `url`, with everything that the client holds.

        Raises StayedError, with the reason, if the move is not complete after `within_s`: then the
        client is where it was.  Either way nothing is lost or delivered twice.
        """
        self.check_open()
        return await self._mover.move(url, within_s=within_s)

    def on_move_over(self, home: BrokerConnection, left: BrokerConnection) -> None:
        """A move has ended at the broker of `home`; `left` leads to the other one."""
        self.broker_connection = home
        self._mover.leave(left)
        self.keep_pace()
        home.flush_soon()
        self.on_progress()

    # -- publishing ----------------------------------------------------------------------------

    async def advertise(self, filter: str | Filter) -> AdvertisementId:
        """Announce what will be published, and wait until that is in effect."""
        self.check_open()
        id = self.session.advertise(_parsed(filter))
        awaited = self._awaited[id] = asyncio.get_running_loop().create_future()
        self.broker_connection.flush_soon()
        try:
            with self.awaiting_notice():
                await awaited
        except asyncio.CancelledError:  # The caller has no id to withdraw it with.
            self.session.unadvertise(id)
            self.broker_connection.flush_soon()
            raise
        finally:
            del self._awaited[id]
        return id

    async def unadvertise(self, id: AdvertisementId) -> None:
        """Withdraw an advertisement, after what was published under it is acknowledged."""
        self.check_open()
        await self._until(lambda: not self.session.is_used(id))
        self.session.unadvertise(id)
        self.broker_connection.flush_soon()

    async def publish(self, record: Mapping[str, Value], *, payload: bytes = b"") -> None:
        """Publish a record under the advertisement that permits it.

        Returns when the publication is on its way, or waits for a connection; waits itself while
        too much is not acknowledged.  `flush` waits for acknowledgement.
        """
        self.check_open()
        session = self.session
        session.publish(record, payload)
        if session.stream.pending_bytes < WRITE_BYTES:
            self.broker_connection.flush_soon()
            if not session.held.size_bytes:
                return
        else:
            self.broker_connection.flush()
            await asyncio.sleep(0)
        if session.waiting_bytes > WAITING_BYTES_MAX:
            await self._until(lambda: session.waiting_bytes <= WAITING_BYTES_MAX // 2)

    async def flush(self) -> None:
        """Wait until every request and publication so far is acknowledged.

        A publication is acknowledged when the subscribers have it, or brokers keep it for those
        that are away: from then on no single failure can lose it.  Raises RefusedError if the
        broker has refused one since the last flush.
        """
        self.check_open()
        self.broker_connection.flush()
        await self._until(lambda: self.session.is_idle)
        if self._refusals:
            refusals, self._refusals = self._refusals, []
            raise RefusedError(f"{refusals[0].about}: {refusals[0].reason}")

    async def _until(self, done: Callable[[], bool]) -> None:
        while not done():
            self.check_open()
            if self._progress is None:
                self._progress = asyncio.get_running_loop().create_future()
            with self.awaiting_notice() if self.session.held else contextlib.nullcontext():
                await asyncio.shield(self._progress)

    # -- subscribing ---------------------------------------------------------------------------

    def subscribe(self, *filters: str | Filter, local_only: bool = False) -> Events:
        """What any of the filters matches, each publication once.

        With `local_only`, only what passes the broker of this client anyway: no other broker learns
        of the subscription.

        To be entered with `async with`, or iterated as it is; see `Events`.  Publications of other
        clients only: a client does not receive its own.
        """
        self._check_not_closed()
        if not filters:
            raise UsageError("subscribe needs at least one filter")
        parsed = tuple(map(_parsed, filters))
        for filter in parsed:  # Before the broker is asked for the first of them.
            check_askable(filter)
        return Events(self._dispatch, parsed, local_only=local_only)

    def subscribe_channel(self, channel: str, /, **arguments: Value) -> ChannelEvents:
        """The results of a channel for these arguments; to be used like `subscribe`."""
        self._check_not_closed()
        return ChannelEvents(self._dispatch, channel, check_arguments(arguments))

    def awaiting_notice(self) -> AbstractContextManager[None]:
        """Keep receiving, even if the application is behind with its events."""
        return self._dispatch.awaiting_notice()

    def keep_pace(self) -> None:
        """Acknowledge what is received, unless the application is behind with its events."""
        self.broker_connection.fall_behind(self._dispatch.is_behind)

    # -- called by the connection --------------------------------------------------------------

    def on_message(self, message: NumberedFrame, hops: int) -> None:
        if isinstance(message, Publication):
            if self.on_publication is not None:
                self.on_publication(message, hops)
            self._dispatch.deliver(message, hops)
            return
        match message:
            case SubscriptionInEffect(id=id):
                self._dispatch.confirm(id)
                self._lapsed.discard(id)
                self.on_progress()
            case AdvertisementInEffect(id=id):
                if id in self._awaited and not self._awaited[id].done():
                    self._awaited[id].set_result(None)
                self._mover.on_old(message)
                self.on_progress()
            case Swept() | Paused():
                self._mover.on_old(message)
            case MoveTo():
                self._mover.on_asked(message)
            case NetworkStatus():
                self._readiness.on_status(message)
            case MeasureRoundTrips():
                self._pinger.on_asked(message)
            case ChannelInEffect():
                self._dispatch.confirm_channel(message)
            case ChannelResults():
                self._dispatch.deliver_results(message)
            case Refusal():
                self._on_refusal(message)
            case Dropped(count=count):
                self._dispatch.count_dropped(count)
                self.gaps.on_dropped(self.session.broker, count)
            case GapNotice():
                self.gaps.on_notice(message)
            case _:
                assert_never(message)

    def _on_refusal(self, refusal: Refusal) -> None:
        awaited = self._awaited.get(AdvertisementId(refusal.about))
        if awaited is not None:
            if not awaited.done():
                awaited.set_exception(RefusedError(f"{refusal.about}: {refusal.reason}"))
        elif not self._dispatch.fail(refusal.about, refusal.reason):
            self._refusals.append(refusal)
        self.on_progress()

    def _on_missed(self) -> None:
        self._lapsed = set(self.session.subscriptions)
        self.gaps.on_session_ended(self.session.broker, self.broker_connection.lost_s)

    def on_progress(self) -> None:
        self._mover.on_progress()
        if self._generation != self.session.generation:
            self._generation = self.session.generation
            self.gaps.doubt()
        elif self.session.was_answered:
            self.gaps.settle()
        if not self._lapsed & self.session.subscriptions.keys():
            self.gaps.on_subscriptions_in_effect()
        if self._progress is not None:
            self._progress.set_result(None)
            self._progress = None


def _parsed(filter: str | Filter) -> Filter:
    if isinstance(filter, Filter):
        return filter
    if not isinstance(filter, str):
        kind = type(filter).__name__
        raise UsageError(f"a filter is a text, or a Filter, not of type {kind}: give one at a time")
    return Filter.parse(filter)
