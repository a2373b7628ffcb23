"""Asking a broker for its name, to measure the round trip."""

from __future__ import annotations

from time import perf_counter

from godwit.protocol.call import Opener, Question
from godwit.protocol.frames import ProbeReply, ProbeRequest, decode_probe_reply, encode


class Probe(Question[ProbeReply, str]):
    def __init__(self) -> None:
        super().__init__(decode_probe_reply)

    async def round_trip(self, opener: Opener) -> tuple[str, float]:
        """The broker's name, and the seconds from request to reply, without connecting.

        Raises OSError, RefusedError or PeerError.
        """
        try:
            await opener(self._connection)
            start_s = perf_counter()
            self._connection.write(encode(ProbeRequest()))
            name = await self._answered
            return name, perf_counter() - start_s
        finally:
            self._give_up()

    def _accepted(self, answer: ProbeReply) -> str:
        return answer.name
