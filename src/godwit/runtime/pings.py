"""A broker asks its clients for their round-trip times to other brokers.

    module --> Ping --> MeasureRoundTrips --> client (client/round_trips.py)
    module <-- Pinged <-- RoundTrips <------- client

Every question is answered: if the client has left, or does not answer in time, the answer is
empty.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from godwit.broker.effects import Ping
from godwit.broker.stimuli import Pinged
from godwit.protocol.frames import BROKERS_ASKED_MAX, MeasureRoundTrips, RoundTrips, encode

if TYPE_CHECKING:
    from godwit.runtime.port import Port

#: For the client; and for its answer to arrive, behind what it publishes.
PING_S, GRACE_S = 2.0, 3.0


@dataclass(frozen=True, slots=True)
class _Question:
    ping: Ping
    timer: asyncio.TimerHandle


class Pinging:
    def __init__(self, tell: Callable[[Pinged], None]) -> None:
        """`tell` receives the answers."""
        self._tell = tell
        self._questions: dict[int, _Question] = {}
        self._asked = 0

    def ask(self, ping: Ping, client: Port | None) -> None:
        """Put the question to a client; None if it has just left."""
        loop = asyncio.get_running_loop()
        self._asked += 1
        delay_s = 0.0
        if client is not None:
            delay_s = PING_S + GRACE_S
            brokers = list(ping.brokers[:BROKERS_ASKED_MAX])
            client.put(
                encode(MeasureRoundTrips(question=self._asked, brokers=brokers, within_s=PING_S))
            )
        timer = loop.call_later(delay_s, self._answer, self._asked, {})
        self._questions[self._asked] = _Question(ping, timer)

    def on_round_trips(self, client: str, answer: RoundTrips) -> None:
        question = self._questions.get(answer.question)
        if question is None or question.ping.client != client:
            return
        question.timer.cancel()
        found = {
            name: seconds
            for (name, _), seconds in zip(question.ping.brokers, answer.seconds, strict=False)
            if seconds is not None
        }
        # Not in the middle of a read.
        asyncio.get_running_loop().call_soon(self._answer, answer.question, found)

    def _answer(self, number: int, round_trips_s: dict[str, float]) -> None:
        question = self._questions.pop(number, None)
        if question is not None:
            self._tell(Pinged(question.ping.module, question.ping.client, round_trips_s))
