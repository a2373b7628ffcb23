"""Calling a broker: open a connection, send Hello, and wait for its Welcome."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Generic, Self, TypeVar

from godwit.content.link_messages import EpochNews
from godwit.errors import PeerError, RefusedError, TakenOverError
from godwit.protocol.addresses import url_address
from godwit.protocol.connection import Connection
from godwit.protocol.frames import (
    DECODE_ERRORS,
    FRAME_BYTES_MAX,
    HEARTBEAT_S,
    Goodbye,
    Hello,
    Welcome,
    decode_welcome,
    encode,
    malformed,
)
from godwit.protocol.versions import check_version

A = TypeVar("A")
T = TypeVar("T")

#: Opens a connection to a broker: by a socket, or in memory.
Opener = Callable[[Connection], Awaitable[object]]

CONNECT_HEARTBEATS_MAX = 3


def socket_opener(host: str, port: int) -> Opener:
    async def open_socket(connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: connection, host, port)
        except UnicodeError:  # From the encoding of host names, as if it could not be reached.
            raise OSError(f"{host!r} is not a valid host name") from None

    return open_socket


def url_opener(url: str) -> Opener:
    """Opens a socket to the broker at `godwit://HOST:PORT`."""
    return socket_opener(*url_address(url))


class CycleError(RefusedError):
    """A link was refused: there is another way between its ends."""

    def __init__(self, reason: str, broker: str) -> None:
        super().__init__(reason)
        self.broker = broker
        """The name of the other end; "" if it has not told."""


class LinkedError(RefusedError):
    """A link was refused: its ends are linked already."""

    def __init__(self, reason: str, broker: str) -> None:
        super().__init__(reason)
        self.broker = broker
        """The name of the other end."""


class LaneOverError(RefusedError):
    """A link was refused: the epoch of its lane is over."""

    def __init__(self, reason: str, news: EpochNews) -> None:
        super().__init__(reason)
        self.news = news
        """The epochs that are in use."""


class Question(ABC, Generic[A, T]):
    """The receiver of one answer, `A` on the wire and `T` for the caller."""

    def __init__(
        self, decode: Callable[[bytes], A | Goodbye], heartbeat_s: float = HEARTBEAT_S
    ) -> None:
        self._decode = decode
        self._connection = Connection(self, heartbeat_s=heartbeat_s)
        self._answered: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    @abstractmethod
    def _accepted(self, answer: A) -> T:
        """The result for the caller."""

    def on_frame(self, hops: int, body: bytes) -> None:
        try:
            answer = self._decode(body)
        except DECODE_ERRORS as error:
            raise malformed(error) from None
        if isinstance(answer, Goodbye):
            self._fail(_refusal(answer))
        elif not self._answered.done():
            accepted = self._accepted(answer)
            if not self._answered.done():  # The caller may have been cancelled meanwhile.
                self._answered.set_result(accepted)

    def on_lost(self, reason: str, *, broke_rules: bool) -> None:
        self._fail(PeerError(reason))

    def _fail(self, error: Exception) -> None:
        if not self._answered.done():
            self._answered.set_exception(error)

    def _give_up(self) -> None:
        """Nobody awaits the answer any more; the connection may be there all the same."""
        self._connection.abort()
        if not self._answered.cancel() and not self._answered.cancelled():
            self._answered.exception()  # It counts as noticed.

    def on_read(self) -> None:
        pass

    def on_writable(self) -> None:
        pass

    def on_heartbeat(self) -> None:
        pass


class Call(Question[Welcome, T]):
    """The handshake.  `accept` takes the connection over at once: frames may follow the Welcome."""

    def __init__(
        self,
        hello: Hello,
        accept: Callable[[Welcome, Connection], T],
        *,
        heartbeat_s: float = HEARTBEAT_S,
    ) -> None:
        super().__init__(decode_welcome, heartbeat_s)
        self._hello = hello
        self._heartbeat_s = heartbeat_s
        self._accept = accept

    def accept_large(self) -> Self:
        """Of a broker that calls: the answer may have the shape of the whole network."""
        self._connection.frame_bytes_max = FRAME_BYTES_MAX
        return self

    async def make(self, opener: Opener) -> T:
        """The result of `accept`; raises OSError, RefusedError or PeerError.

        The RefusedError is a TakenOverError if another client has the caller's name.
        """
        try:
            # A TimeoutError is an OSError.  Without this the kernel would try for minutes.
            async with asyncio.timeout(CONNECT_HEARTBEATS_MAX * self._heartbeat_s):
                await opener(self._connection)
            self._connection.write(encode(self._hello))
            return await self._answered
        except BaseException:
            self._give_up()
            raise

    def _accepted(self, answer: Welcome) -> T:
        try:
            check_version(answer.protocol)
        except PeerError as error:
            self._fail(RefusedError(str(error)))
            raise
        self._connection.peer_version = answer.protocol
        return self._accept(answer, self._connection)


def _refusal(goodbye: Goodbye) -> RefusedError:
    if goodbye.name_is_taken:
        return TakenOverError(goodbye.reason)
    if goodbye.closes_cycle:
        return CycleError(goodbye.reason, goodbye.linked_as)
    if goodbye.news is not None:
        return LaneOverError(goodbye.reason, goodbye.news)
    if goodbye.linked_as:
        return LinkedError(goodbye.reason, goodbye.linked_as)
    return RefusedError(goodbye.reason)
