"""A coordinator process, and reports in the name of brokers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

from godwit.api import coordinator_api
from godwit.client import Client
from godwit.content.geography import GeoPoint
from godwit.errors import GodwitError
from godwit.http.errors import RestError
from godwit.http.http_client import HttpClient
from godwit.runtime.processes import Processes
from godwit.runtime.service import Service


class CoordinatorProcess(Service):
    """Has the same port when it is started again."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._options = ("--state", str(folder), *options)
        super().__init__("coordinator", "--listen", "127.0.0.1:0", *self._options)

    async def start(self) -> None:
        if self.url:
            self._arguments = ("--listen", self.url.removeprefix("http://"), *self._options)
        await super().start()

    async def end(self, by: signal.Signals) -> int:
        """Send a signal, and wait for the exit code."""
        os.kill(self.pid, by)
        await self.wait()
        return await self.stop()


def registrations(
    running: Processes, locations: Mapping[str, GeoPoint]
) -> list[coordinator_api.RegisterBroker]:
    return [
        coordinator_api.RegisterBroker(
            broker.id, running.url(broker.id), running.http(broker.id), locations.get(broker.id)
        )
        for broker in running.network.broker
    ]


@contextlib.asynccontextmanager
async def reporting(
    caller: HttpClient,
    brokers: list[coordinator_api.RegisterBroker],
    clients: list[Client],
    holds: Callable[[Client], list[int]],
    rates: Mapping[int, float],
) -> AsyncIterator[None]:
    """Reports the clients of each broker, and what they would hold in the data cluster."""

    async def report(broker: coordinator_api.RegisterBroker) -> None:
        here = {c.name: holds(c) for c in clients if c.session.broker == broker.broker}
        known = {be: rates[be] for held in here.values() for be in held}
        try:
            await caller.call(
                coordinator_api.LOAD_REPORT,
                coordinator_api.LoadReport(broker.broker, 0, 0, known, here),
            )
        except RestError:
            await caller.call(coordinator_api.REGISTER_BROKER, broker)

    async def report_all() -> None:
        while True:
            for broker in brokers:
                with contextlib.suppress(GodwitError):  # The coordinator may be down.
                    await report(broker)
            await asyncio.sleep(0.1)

    task = asyncio.create_task(report_all())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
