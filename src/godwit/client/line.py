"""The line to a broker: kept by calling again whenever the connection is lost.

If nobody has answered for `fall_back_s`, by which time a broker has usually given the session up,
other places are tried too where the client has been at home before, one after the other.  A place
may also be a guide, who is asked for a broker whenever its turn comes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple, Protocol

from godwit.client.post import Arrived, Post
from godwit.errors import PeerError, RefusedError, UnreachableError
from godwit.wire.call import Call, Opener, Pauses
from godwit.wire.connection import Connection
from godwit.wire.frames import (
    FRAME_BYTES_MAX,
    STAMP_BYTES,
    Acknowledge,
    Goodbye,
    Hello,
    Welcome,
    encode,
)

#: Sent to the broker ahead of its acknowledgements at most.
WINDOW_BYTES = 1_048_576
#: As long as a broker keeps a session, unless it is told otherwise.
FALL_BACK_S = 60.0


class Place(NamedTuple):
    """Where a broker listens, as people write it, and how to get there."""

    where: str
    opener: Opener


class Durable(NamedTuple):
    """For one whose publishers wait for it, and who acknowledges what it has put away."""

    secret: str


class Guide(NamedTuple):
    """Somebody who knows which broker to use; raises OSError, or RefusedError."""

    where: str
    find: Callable[[], Awaitable[Place]]


class Listener(Protocol):
    """Who is told what comes over the line."""

    def on_arrived(self, frame: Arrived, hops: int) -> None: ...

    def on_progress(self) -> None:
        """The broker has taken something in, or there is a new connection."""
        ...


class Line:
    """Receives what the connection reads, once the broker has said welcome."""

    def __init__(
        self,
        post: Post,
        places: Iterable[Place | Guide],
        *,
        listener: Listener,
        fall_back_s: float = FALL_BACK_S,
        durable: Durable | None = None,
    ) -> None:
        self.post = post
        self.listener = listener
        self.places: deque[Place | Guide] = deque(places)
        """Where to call, and where else."""
        self.connection: Connection | None = None
        self.fall_back_s = fall_back_s
        self._durable = durable
        self._trouble = "no answer"
        self._acknowledged = 0
        self._is_behind = False
        self._lost = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._is_over = False
        self._flush_is_planned = False

    # -- the connection ------------------------------------------------------------------------

    async def open(self, within_s: float) -> None:
        """Connect, or say why not; from then on stay connected."""
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._keeper = asyncio.create_task(self._keep_connected(opened))
        try:
            async with asyncio.timeout(within_s):  # Of Python 3.11, `wait_for` may miss a cancel.
                await opened
        except TimeoutError:
            await self._give_up()
            raise UnreachableError(
                f"no broker at {self.places[0].where}: {self._trouble}"
            ) from None
        except BaseException:
            await self._give_up()
            raise

    async def _give_up(self) -> None:
        """A broker that has answered meanwhile is told, unless it shall wait for the next."""
        if self._durable is not None:
            self.abort()
        else:
            await self.close()

    async def close(self) -> None:
        self.hang_up("the client was closed")
        if self._keeper is not None:
            await asyncio.gather(self._keeper, return_exceptions=True)

    def hang_up(self, reason: str) -> None:
        """Say goodbye, and keep the line no longer."""
        self._is_over = True
        if self._keeper is not None:
            self._keeper.cancel()
        if self.connection is not None:
            self.connection.close(Goodbye(reason=reason))
            self.connection = None

    def abort(self) -> None:
        """End the line at once, and without a word."""
        if self.connection is not None:
            self.connection.abort()
            self.connection = None
        self.hang_up("")

    async def _keep_connected(self, opened: asyncio.Future[None]) -> None:
        pauses, loop = Pauses(), asyncio.get_running_loop()
        lost_s = loop.time()
        while True:
            try:
                await self._call()
                pauses.reset()
                if not opened.done():
                    opened.set_result(None)
                await self._lost.wait()
                lost_s = loop.time()
            except RefusedError as error:
                self._trouble = str(error)
                if not opened.done():  # Later on, whatever is in the way may go away.
                    opened.set_exception(error)
                    return
            except (OSError, PeerError) as error:
                self._trouble = str(error) or type(error).__name__
            await pauses.take()
            if loop.time() - lost_s > self.fall_back_s:
                self.places.rotate(-1)

    async def _call(self) -> None:
        self._lost.clear()
        stream = self.post.stream
        hello = Hello(
            role="client",
            name=self.post.name,
            stream=stream.id,
            received=stream.received,
            has_holdings=self.post.has_holdings,
            is_durable=self._durable is not None,
            secret=self._durable.secret if self._durable else "",
        )
        place = await self._place()
        await Call(hello, self._accept).make(place.opener)

    async def _place(self) -> Place:
        """Where to call.  What a guide has found comes first from then on: the session is there."""
        first = self.places[0]
        if not isinstance(first, Guide):
            return first
        found = await first.find()
        for place in [place for place in self.places if place.where == found.where]:
            self.places.remove(place)
        self.places.appendleft(found)
        return found

    def _accept(self, welcome: Welcome, connection: Connection) -> None:
        if self._is_over:
            raise PeerError("nobody wants this line any more")
        stream_id = self.post.stream.id
        lacking = self.post.welcome(welcome)
        self.connection = connection
        connection.receiver = self
        connection.frame_bytes_max = FRAME_BYTES_MAX + STAMP_BYTES
        connection.beat_every(welcome.heartbeat_s)
        if self.post.stream.id != stream_id:
            self._acknowledged = 0
        connection.write(lacking)
        if self.post.stream.received:  # The broker may not have heard of that.
            self._acknowledge()
        self.flush()
        self.listener.on_progress()

    # -- what goes out -------------------------------------------------------------------------

    def flush(self) -> None:
        """Write what is pending, as far as the broker takes it."""
        connection, stream = self.connection, self.post.stream
        while (
            connection is not None
            and stream.pending_bytes
            and connection.is_writable
            and stream.unacknowledged_bytes < WINDOW_BYTES
        ):
            connection.write(stream.take())

    def flush_soon(self) -> None:
        """Write what is pending once the application has had its say."""
        if not self._flush_is_planned:
            self._flush_is_planned = True
            asyncio.get_running_loop().call_soon(self._flush_planned)

    def _flush_planned(self) -> None:
        self._flush_is_planned = False
        self.flush()

    def fall_behind(self, is_behind: bool) -> None:
        """Confirm nothing while the application is behind; the broker stops at a full window.

        What it confirms to us is still heard, as it would not be if we stopped reading: the
        application may publish in between, and wait for that.
        """
        was_behind, self._is_behind = self._is_behind, is_behind
        if was_behind and not is_behind:
            self._acknowledge()

    def confirm(self, stream_id: str, received: int) -> None:
        """So many frames of this stream were put away; for a durable line only."""
        if stream_id == self.post.stream.id and received > self._acknowledged:
            self._acknowledged = received
            self._acknowledge()

    def _acknowledge(self) -> None:
        if not self._is_behind and self._durable is None:
            self._acknowledged = self.post.stream.received
        if self.connection is not None:
            self.connection.write(encode(Acknowledge(received=self._acknowledged)))

    # -- what comes in -------------------------------------------------------------------------

    def on_frame(self, hops: int, body: bytes) -> None:
        frame = self.post.receive(body)
        if isinstance(frame, Acknowledge):
            self.flush()
            self.listener.on_progress()
        elif isinstance(frame, Goodbye):
            # The session may outlive this: what the broker has not got is sent again.
            self._drop_connection()
        elif frame is not None:
            self.listener.on_arrived(frame, hops)

    def on_read(self) -> None:
        is_manual = self._is_behind or self._durable is not None
        if self.post.stream.received != self._acknowledged and not is_manual:
            self._acknowledge()
        self.flush()

    def on_writable(self) -> None:
        self.flush()
        self.listener.on_progress()

    def on_heartbeat(self) -> None:
        self._acknowledge()

    def on_lost(self, reason: str, *, broke_rules: bool) -> None:
        self.connection = None
        self._lost.set()

    def _drop_connection(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.on_lost("", broke_rules=False)
