"""Knocking at a broker's door: who is there, and how long does it take to hear that?"""

from __future__ import annotations

from time import perf_counter

from godwit.errors import RefusedError
from godwit.wire.call import Opener, Question
from godwit.wire.frames import DECODE_ERRORS, Goodbye, Knock, decode_here, encode, malformed


class Knocking(Question[str]):
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
