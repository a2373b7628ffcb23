"""The line to the broker: kept by calling again whenever the connection is lost."""

from __future__ import annotations

import asyncio
from typing import Protocol

from godwit.client.session import Arrived, ClientSession
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
        session: ClientSession,
        opener: Opener,
        *,
        where: str,
        listener: Listener,
    ) -> None:
        self.connection: Connection | None = None
        self._session = session
        self._opener = opener
        self._where = where
        self._listener = listener
        self._trouble = "no answer"
        self._acknowledged = 0
        self._is_behind = False
        self._lost = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._flush_is_planned = False

    # -- the connection ------------------------------------------------------------------------

    async def open(self, within_s: float) -> None:
        """Connect, or say why not; from then on stay connected."""
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._keeper = asyncio.create_task(self._keep_connected(opened))
        try:
            await asyncio.wait_for(opened, within_s)
        except TimeoutError:
            await self.close()
            raise UnreachableError(f"no broker at {self._where}: {self._trouble}") from None
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        if self.connection is not None:
            self.connection.close(Goodbye(reason="the client was closed"))
            self.connection = None

    async def _keep_connected(self, opened: asyncio.Future[None]) -> None:
        pauses = Pauses()
        while True:
            try:
                await self._call()
                pauses.reset()
                if not opened.done():
                    opened.set_result(None)
                await self._lost.wait()
            except RefusedError as error:
                self._trouble = str(error)
                if not opened.done():  # Later on, whatever is in the way may go away.
                    opened.set_exception(error)
                    return
            except (OSError, PeerError) as error:
                self._trouble = str(error) or type(error).__name__
            await pauses.take()

    async def _call(self) -> None:
        self._lost.clear()
        session = self._session
        hello = Hello(
            role="client",
            name=session.name,
            stream=session.stream.id,
            received=session.stream.received,
        )
        await Call(hello, self._accept).make(self._opener)

    def _accept(self, welcome: Welcome, connection: Connection) -> None:
        lacking = self._session.welcome(welcome)
        self.connection = connection
        connection.receiver = self
        connection.frame_bytes_max = FRAME_BYTES_MAX + STAMP_BYTES
        connection.beat_every(welcome.heartbeat_s)
        self._acknowledged = self._session.stream.received
        connection.write(lacking)
        self.flush()
        self._listener.on_progress()

    # -- what goes out -------------------------------------------------------------------------

    def flush(self) -> None:
        """Write what is pending, as far as the broker takes it."""
        connection, stream = self.connection, self._session.stream
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

    def _acknowledge(self) -> None:
        if not self._is_behind:
            self._acknowledged = self._session.stream.received
        if self.connection is not None:
            self.connection.write(encode(Acknowledge(received=self._acknowledged)))

    # -- what comes in -------------------------------------------------------------------------

    def on_frame(self, hops: int, body: bytes) -> None:
        frame = self._session.receive(body)
        if isinstance(frame, Acknowledge):
            self.flush()
            self._listener.on_progress()
        elif isinstance(frame, Goodbye):
            # The session may outlive this: what the broker has not got is sent again.
            self._drop_connection()
        elif frame is not None:
            self._listener.on_arrived(frame, hops)

    def on_read(self) -> None:
        if self._session.stream.received != self._acknowledged and not self._is_behind:
            self._acknowledge()
        self.flush()

    def on_writable(self) -> None:
        self.flush()
        self._listener.on_progress()

    def on_heartbeat(self) -> None:
        self._acknowledge()

    def on_lost(self, reason: str, *, broke_rules: bool) -> None:
        self.connection = None
        self._lost.set()

    def _drop_connection(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.on_lost("", broke_rules=False)
