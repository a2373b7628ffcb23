"""A broker asks how far a client is from others: it knocks at their doors, all at once.

One knock at each: the thesis finds that more serve nothing.  Who answers in another's place, or not
in time, has not answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from godwit.client.line import Line
from godwit.client.session import ClientSession
from godwit.errors import GodwitError
from godwit.wire.call import Opener
from godwit.wire.frames import HowFar, RoundTrips
from godwit.wire.knocking import Knocking

#: Connections at a time.
AT_ONCE = 64


class Asked(Protocol):
    """The part of a client that pinging needs."""

    session: ClientSession
    line: Line


class Pinger:
    def __init__(self, asked: Asked, resolve: Callable[[str], Opener]) -> None:
        """`resolve` tells how to get to the broker at an address."""
        self._asked = asked
        self._resolve = resolve
        self._tasks: set[asyncio.Task[None]] = set()

    def on_asked(self, question: HowFar) -> None:
        task = asyncio.create_task(self._answer(question))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, question: HowFar) -> None:
        asked_by = self._asked.session.stream
        deadline_s = asyncio.get_running_loop().time() + question.within_s
        few = asyncio.Semaphore(AT_ONCE)
        seconds = await asyncio.gather(
            *(self._round_trip_s(name, at, deadline_s, few) for name, at in question.brokers)
        )
        session = self._asked.session
        if session.stream is asked_by:  # Else we have moved, and who asked is not there any more.
            session.put(RoundTrips(question=question.question, seconds=list(seconds)))
            self._asked.line.flush_soon()

    async def _round_trip_s(
        self, broker: str, address: str, deadline_s: float, few: asyncio.Semaphore
    ) -> float | None:
        try:
            async with asyncio.timeout_at(deadline_s), few:
                name, seconds = await Knocking().round_trip(self._resolve(address))
        except (OSError, GodwitError):  # A TimeoutError is an OSError.
            return None
        return seconds if name == broker else None

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
