"""The connection to a broker: re-established, with back-off, whenever it is lost.

There may be several places: the addresses that the application gave, and later also the brokers
where the client was before.  Instead of an address there may be a finder, which is asked for a
broker whenever it is its turn.

    at first     the places are tried in order, the next one at once, until a broker accepts
    later        the broker that has the session, which may come back; if it has not answered for
                 `fall_back_s`, by which time it has usually ended the session, all places in turn;
                 at once, if it refuses, or says goodbye: then the session is over there
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from godwit.client.stream_endpoint import NumberedFrame, StreamEndpoint
from godwit.errors import PeerError, RefusedError, TakenOverError, UnreachableError, UsageError
from godwit.protocol.backoff import Backoff
from godwit.protocol.call import Call, Opener
from godwit.protocol.connection import Connection
from godwit.protocol.frames import (
    FRAME_BYTES_MAX,
    STAMP_BYTES,
    Acknowledge,
    Goodbye,
    Hello,
    Welcome,
    encode,
)
from godwit.protocol.versions import PROTOCOL

#: Bytes sent to the broker and not acknowledged, at most.
WINDOW_BYTES = 1_048_576
#: As long as a broker keeps a session, by default.
FALL_BACK_S = 60.0


def new_incarnation() -> str:
    """A word that no other start of a client draws."""
    return secrets.token_hex(6)


class BrokerPlace(NamedTuple):
    """The address of a broker as text, and how to open a connection to it."""

    where: str
    opener: Opener


class BrokerFinder(NamedTuple):
    """Finds out which broker to use; `find` raises OSError or RefusedError."""

    where: str
    find: Callable[[], Awaitable[BrokerPlace]]


class DurableClient(NamedTuple):
    """For a client whose publishers wait for it, and that acknowledges what it has stored."""

    secret: str


class Listener(Protocol):
    """Receives what the broker sends."""

    def on_message(self, message: NumberedFrame, hops: int) -> None: ...

    def on_progress(self) -> None:
        """The broker has acknowledged something, or there is a new connection."""
        ...

    def on_taken_over(self, error: TakenOverError) -> None:
        """Another client has the name of this one; there will be no connection any more."""
        ...


class BrokerConnection:
    """The receiver of the connection, once the broker has sent its welcome."""

    def __init__(
        self,
        endpoint: StreamEndpoint,
        places: Iterable[BrokerPlace | BrokerFinder],
        *,
        listener: Listener,
        fall_back_s: float = FALL_BACK_S,
        durable: DurableClient | None = None,
    ) -> None:
        self.endpoint = endpoint
        """Whose stream this carries; another one after a move."""
        self.listener = listener
        """Receives what the broker sends; another one after a move."""
        self.places: deque[BrokerPlace | BrokerFinder] = deque(places)
        """Where to connect, in order of preference."""
        self.connection: Connection | None = None
        self.fall_back_s = fall_back_s
        self.lost_s = time.time()
        """When the broker was last heard on a lost connection, in seconds since 1970."""
        self._heard_s = 0.0
        """The same by the loop's clock."""
        self._durable = durable
        self._troubles: dict[str, str] = {}
        """Why there is no connection, by address."""
        self._was_dismissed = False
        """The broker has said goodbye: the session is over there."""
        self._peer_version = PROTOCOL
        self._acknowledged = 0
        self._is_behind = False
        self._lost = asyncio.Event()
        self._opened: asyncio.Future[None] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._is_over = False
        self._flush_is_planned = False

    # -- connecting ----------------------------------------------------------------------------

    async def open(self, within_s: float) -> None:
        """Connect, and stay connected from then on.

        Raises UnreachableError or RefusedError if the first connection fails.
        """
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._opened = opened
        self._keeper = asyncio.create_task(self._keep_connected(opened, within_s))
        self._keeper.add_done_callback(lambda keeper: _settle(opened, keeper))
        try:
            async with asyncio.timeout(within_s):  # Of Python 3.11, `wait_for` may miss a cancel.
                await opened
        except TimeoutError:
            await self._give_up()
            raise UnreachableError(f"no broker at {self.trouble}") from None
        except BaseException:
            await self._give_up()
            raise

    @property
    def trouble(self) -> str:
        """Why there is no connection, for each address that was tried."""
        troubles = self._troubles or {self.places[0].where: "no answer"}
        return "; ".join(f"{where}: {trouble}" for where, trouble in troubles.items())

    async def _give_up(self) -> None:
        """Send Goodbye to a broker that has answered meanwhile, unless it shall keep the stream."""
        if self._durable is not None:
            self.abort()
        else:
            await self.close()

    async def close(self) -> None:
        self.leave("the client was closed")
        if self._keeper is not None:
            await asyncio.gather(self._keeper, return_exceptions=True)

    def leave(self, reason: str) -> None:
        """Send Goodbye, and do not connect again."""
        self._is_over = True
        if self._keeper is not None:
            self._keeper.cancel()
        if self.connection is not None:
            self.connection.close(Goodbye(reason=reason))
            self.connection = None

    def abort(self) -> None:
        """Disconnect at once and without Goodbye, and do not connect again."""
        if self.connection is not None:
            self.connection.abort()
            self.connection = None
        self.leave("")

    async def _keep_connected(self, opened: asyncio.Future[None], within_s: float) -> None:
        try:
            await self._connect_first(within_s)
        except RefusedError as error:
            opened.set_exception(RefusedError(str(error)))
            return
        opened.set_result(None)
        while True:
            await self._lost.wait()
            await self._connect_again()

    async def _connect_first(self, within_s: float) -> None:
        """Try the places in order, again and again; RefusedError if all of them refuse."""
        homes, backoff, loop = list(self.places), Backoff(), asyncio.get_running_loop()
        start_s = loop.time()
        # One that does not answer must leave time for the others.
        share_s = within_s / len(homes) if len(homes) > 1 else None
        while True:
            refusals: list[RefusedError] = []
            for index, home in enumerate(homes):
                if len(homes) > 1:
                    self.places.clear()
                    self.places.extend(homes[index:] + homes[:index])
                try:
                    async with asyncio.timeout(share_s):
                        await self._call()
                except RefusedError as error:
                    refusals.append(error)
                    self._note(home.where, error)
                except (OSError, PeerError) as error:
                    self._note(self.places[0].where if len(homes) == 1 else home.where, error)
                else:
                    return
            if len(refusals) == len(homes):
                raise refusals[0] if len(homes) == 1 else RefusedError(self.trouble)
            await backoff.wait()
            if len(homes) == 1 and loop.time() - start_s > self.fall_back_s:
                self.places.rotate(-1)  # A finder is asked again.

    async def _connect_again(self) -> None:
        backoff, loop = Backoff(), asyncio.get_running_loop()
        lost_s = loop.time()
        is_session_over = self._was_dismissed
        while True:
            await backoff.wait()
            if is_session_over or loop.time() - lost_s > self.fall_back_s:
                self.places.rotate(-1)
            place = self.places[0]
            try:
                await self._call()
            except TakenOverError as error:
                self._on_taken_over(error)
                return
            except RefusedError as error:  # The cause of a refusal may pass.
                is_session_over = True
                self._note(place.where, error)
            except (OSError, PeerError) as error:
                self._note(place.where, error)
            else:
                return

    def _note(self, where: str, error: Exception) -> None:
        says_nothing = "no answer" if isinstance(error, TimeoutError) else type(error).__name__
        self._troubles[where] = str(error) or says_nothing

    async def _call(self) -> None:
        self._lost.clear()
        stream = self.endpoint.stream
        hello = Hello(
            role="client",
            name=self.endpoint.name,
            stream=stream.id,
            received=stream.received,
            has_holdings=self.endpoint.has_holdings,
            is_durable=self._durable is not None,
            secret=self._durable.secret if self._durable else "",
            away_s=asyncio.get_running_loop().time() - self._heard_s if stream.id else 0.0,
        )
        claimed = self.endpoint.claimed
        if claimed is not None:
            claimed.attachment += 1
            hello = replace(hello, **asdict(claimed))
        place = await self._place()
        await Call(hello, self._accept).make(place.opener)

    async def _place(self) -> BrokerPlace:
        """Where to connect.  The broker that a finder has found comes first from then on."""
        first = self.places[0]
        if not isinstance(first, BrokerFinder):
            return first
        found = await first.find()
        for place in [place for place in self.places if place.where == found.where]:
            self.places.remove(place)
        self.places.appendleft(found)
        return found

    def _accept(self, welcome: Welcome, connection: Connection) -> None:
        if self._is_over:
            raise PeerError("the client was closed before the broker answered")
        self._was_dismissed = False
        self._troubles.clear()
        stream_id = self.endpoint.stream.id
        lacking = self.endpoint.welcome(welcome)
        self.connection = connection
        connection.receiver = self
        self._peer_version = connection.peer_version
        connection.frame_bytes_max = FRAME_BYTES_MAX + STAMP_BYTES
        connection.beat_every(welcome.heartbeat_s)
        if self.endpoint.stream.id != stream_id:
            self._acknowledged = 0
        connection.write(lacking)
        if self.endpoint.stream.received:  # The last acknowledgement may have been lost.
            self._acknowledge()
        self.flush()
        self.listener.on_progress()

    # -- sending -------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write what is pending, up to the window."""
        connection, stream = self.connection, self.endpoint.stream
        while (
            connection is not None
            and stream.pending_bytes
            and connection.is_writable
            and stream.unacknowledged_bytes < WINDOW_BYTES
        ):
            connection.write(stream.take())

    def flush_soon(self) -> None:
        """Write what is pending in the next turn of the event loop, together with what follows."""
        if not self._flush_is_planned:
            self._flush_is_planned = True
            asyncio.get_running_loop().call_soon(self._flush_planned)

    def _flush_planned(self) -> None:
        self._flush_is_planned = False
        self.flush()

    def fall_behind(self, is_behind: bool) -> None:
        """Acknowledge nothing while the application is behind; the broker stops at a full window.

        Acknowledgements of the broker are still received, as they would not be if the client
        stopped reading: the application may publish meanwhile, and wait for them.
        """
        was_behind, self._is_behind = self._is_behind, is_behind
        if was_behind and not is_behind:
            self._acknowledge()

    def confirm(self, stream_id: str, received: int) -> None:
        """So many frames of this stream were stored; for a durable client only."""
        if stream_id == self.endpoint.stream.id and received > self._acknowledged:
            self._acknowledged = received
            self._acknowledge()

    def _acknowledge(self) -> None:
        if not self._is_behind and self._durable is None:
            self._acknowledged = self.endpoint.stream.received
        if self.connection is not None:
            self.connection.write(encode(Acknowledge(received=self._acknowledged)))

    # -- receiving: called by the connection ---------------------------------------------------

    def on_frame(self, hops: int, body: bytes) -> None:
        frame = self.endpoint.receive(body, self._peer_version)
        if isinstance(frame, Acknowledge):
            self.flush()
            self.listener.on_progress()
        elif isinstance(frame, Goodbye) and frame.name_is_taken:
            self._on_taken_over(TakenOverError(frame.reason))
        elif isinstance(frame, Goodbye):
            # The session may outlive this: what the broker has not acknowledged is sent again.
            self._was_dismissed = True
            self._note(self.places[0].where, RefusedError(frame.reason))
            self._drop_connection()
        elif frame is not None:
            self.listener.on_message(frame, hops)

    def on_read(self) -> None:
        is_manual = self._is_behind or self._durable is not None
        if self.endpoint.stream.received != self._acknowledged and not is_manual:
            self._acknowledge()
        self.flush()

    def on_writable(self) -> None:
        self.flush()
        self.listener.on_progress()

    def on_heartbeat(self) -> None:
        self._acknowledge()

    def on_lost(self, reason: str, *, broke_rules: bool) -> None:
        if self.connection is not None:
            silence_s = self.connection.silence_s
            self.lost_s = time.time() - silence_s
            self._heard_s = asyncio.get_running_loop().time() - silence_s
        self.connection = None
        self._lost.set()

    def _on_taken_over(self, error: TakenOverError) -> None:
        self.abort()
        if self._opened is not None and not self._opened.done():  # It was welcomed a moment ago.
            self._opened.set_exception(RefusedError(str(error)))
        else:
            self.listener.on_taken_over(error)

    def _drop_connection(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.on_lost("", broke_rules=False)


def _settle(opened: asyncio.Future[None], keeper: asyncio.Task[None]) -> None:
    """Another task than the one that waits for the connection has given it up, or it failed."""
    if not opened.done():
        error = None if keeper.cancelled() else keeper.exception()
        opened.set_exception(error or UsageError("the client was closed before it was connected"))
