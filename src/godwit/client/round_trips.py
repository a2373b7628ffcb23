"""Measures round trips to brokers when the client's broker asks for them (the thesis's pings).

All brokers are probed at the same time, once each: the thesis finds that more probes add nothing.
No result for a broker that does not answer in time, or if another one answers at its address.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from godwit.errors import GodwitError
from godwit.protocol.call import Opener
from godwit.protocol.frames import MeasureRoundTrips, RoundTrips
from godwit.protocol.probe import Probe

if TYPE_CHECKING:
    from godwit.client.client import Client

#: Connections at a time.
AT_ONCE = 64


class Pinger:
    def __init__(self, client: Client, resolve: Callable[[str], Opener]) -> None:
        """`resolve` makes the opener for a broker's address."""
        self._client = client
        self._session = client.session
        self._resolve = resolve
        self._tasks: set[asyncio.Task[None]] = set()

    def on_asked(self, question: MeasureRoundTrips) -> None:
        task = asyncio.create_task(self._answer(question))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, question: MeasureRoundTrips) -> None:
        asked_by = self._session.stream
        deadline_s = asyncio.get_running_loop().time() + question.within_s
        few = asyncio.Semaphore(AT_ONCE)
        seconds = await asyncio.gather(
            *(self._round_trip_s(name, at, deadline_s, few) for name, at in question.brokers)
        )
        if self._session.stream is asked_by:  # Else the client has moved to another broker.
            self._session.put(RoundTrips(question=question.question, seconds=list(seconds)))
            self._client.flush_soon()

    async def _round_trip_s(
        self, broker: str, address: str, deadline_s: float, few: asyncio.Semaphore
    ) -> float | None:
        try:
            async with asyncio.timeout_at(deadline_s), few:
                name, seconds = await Probe().round_trip(self._resolve(address))
        except (OSError, GodwitError):  # A TimeoutError is an OSError.
            return None
        return seconds if name == broker else None

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
