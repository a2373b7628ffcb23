"""Calling a broker: open a connection, say hello, and wait for its welcome."""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from godwit.errors import PeerError, RefusedError
from godwit.wire.connection import Connection
from godwit.wire.frames import (
    DECODE_ERRORS,
    HEARTBEAT_S,
    Goodbye,
    Hello,
    Welcome,
    decode_welcome,
    encode,
    malformed,
)

T = TypeVar("T")

#: Opens a connection to a broker: by a socket, or in memory.
Opener = Callable[[Connection], Awaitable[object]]

CONNECT_HEARTBEATS_MAX = 3
PAUSE_S_MIN = 0.05
PAUSE_S_MAX = 1.0


class Pauses:
    """How long to wait between attempts: twice as long each time, and never in step with others."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._next_s = PAUSE_S_MIN

    async def take(self) -> None:
        pause_s = self._next_s * random.uniform(0.5, 1.0)
        self._next_s = min(2 * self._next_s, PAUSE_S_MAX)
        await asyncio.sleep(pause_s)


def socket_opener(host: str, port: int) -> Opener:
    async def open_socket(connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: connection, host, port)
        except UnicodeError:  # From the encoding of names: nobody expects that of a connection.
            raise OSError(f"no host can be called {host!r}") from None

    return open_socket


class Question(ABC, Generic[T]):
    """Receives one answer, and is not interested in more."""

    def __init__(self, heartbeat_s: float = HEARTBEAT_S) -> None:
        self._connection = Connection(self, heartbeat_s=heartbeat_s)
        self._answered: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    @abstractmethod
    def on_frame(self, hops: int, body: bytes) -> None:
        """The answer."""

    def on_lost(self, reason: str, *, broke_rules: bool) -> None:
        self._fail(PeerError(reason))

    def _fail(self, error: Exception) -> None:
        if not self._answered.done():
            self._answered.set_exception(error)

    def on_read(self) -> None:
        pass

    def on_writable(self) -> None:
        pass

    def on_heartbeat(self) -> None:
        pass


class Call(Question[T]):
    """Receives the answer.  `accept` takes the connection over at once: more may follow it."""

    def __init__(
        self,
        hello: Hello,
        accept: Callable[[Welcome, Connection], T],
        *,
        heartbeat_s: float = HEARTBEAT_S,
    ) -> None:
        super().__init__(heartbeat_s)
        self._hello = hello
        self._heartbeat_s = heartbeat_s
        self._accept = accept

    async def make(self, opener: Opener) -> T:
        """The result of `accept`; raises OSError, RefusedError or PeerError."""
        # A TimeoutError is an OSError.  The kernel would try for minutes, with ever longer pauses.
        async with asyncio.timeout(CONNECT_HEARTBEATS_MAX * self._heartbeat_s):
            await opener(self._connection)
        self._connection.write(encode(self._hello))
        try:
            return await self._answered
        except BaseException:
            self._answered.cancel()  # Nobody will ask for what it may still say.
            self._connection.abort()
            raise

    def on_frame(self, hops: int, body: bytes) -> None:
        try:
            answer = decode_welcome(body)
        except DECODE_ERRORS as error:
            raise malformed(error) from None
        if isinstance(answer, Goodbye):
            self._fail(RefusedError(answer.reason))
        elif not self._answered.done():
            accepted = self._accept(answer, self._connection)
            if not self._answered.done():  # Whoever made the call may have lost interest by now.
                self._answered.set_result(accepted)
