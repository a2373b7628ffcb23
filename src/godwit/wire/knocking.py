"""Knocking at a broker's door: who is there, and how long does it take to hear that?"""

from __future__ import annotations

import asyncio
from time import perf_counter

from godwit.errors import PeerError, RefusedError
from godwit.wire.call import Opener
from godwit.wire.connection import Connection
from godwit.wire.frames import DECODE_ERRORS, Goodbye, Knock, decode_here, encode, malformed


class Knocking:
    """Receives the answer."""

    def __init__(self) -> None:
        self._connection = Connection(self)
        self._answered: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def round_trip(self, opener: Opener) -> tuple[str, float]:
        """Who answered, and after how many seconds, once there was a connection.

        Raises OSError, RefusedError or PeerError.
        """
        await opener(self._connection)
        start_s = perf_counter()
        self._connection.write(encode(Knock()))
        try:
            name = await self._answered
            return name, perf_counter() - start_s
        finally:
            self._connection.abort()

    def on_frame(self, hops: int, body: bytes) -> None:
        try:
            answer = decode_here(body)
        except DECODE_ERRORS as error:
            raise malformed(error) from None
        if isinstance(answer, Goodbye):
            self._fail(RefusedError(answer.reason))
        elif not self._answered.done():
            self._answered.set_result(answer.name)

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
