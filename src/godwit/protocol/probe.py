"""Asking a broker for its name, to measure the round trip."""

from __future__ import annotations

from time import perf_counter

from godwit.errors import RefusedError
from godwit.protocol.call import Opener, Question
from godwit.protocol.frames import (
    DECODE_ERRORS,
    Goodbye,
    ProbeRequest,
    decode_probe_reply,
    encode,
    malformed,
)


class Probe(Question[str]):
    async def round_trip(self, opener: Opener) -> tuple[str, float]:
        """The broker's name, and the seconds from request to reply, without connecting.

        Raises OSError, RefusedError or PeerError.
        """
        await opener(self._connection)
        start_s = perf_counter()
        self._connection.write(encode(ProbeRequest()))
        try:
            name = await self._answered
            return name, perf_counter() - start_s
        finally:
            self._connection.abort()

    def on_frame(self, hops: int, body: bytes) -> None:
        try:
            answer = decode_probe_reply(body)
        except DECODE_ERRORS as error:
            raise malformed(error) from None
        if isinstance(answer, Goodbye):
            self._fail(RefusedError(answer.reason))
        elif not self._answered.done():
            self._answered.set_result(answer.name)
