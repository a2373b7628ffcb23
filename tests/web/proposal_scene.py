"""A coordinator in a dry run that proposes to move one of two subscribers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from tests.asynchronous import until

from godwit.api import coordinator_api
from godwit.api.network_api import BrokerAccount
from godwit.coordinator.server import CoordinatorServer
from godwit.coordinator.settings import CoordinatorSettings
from godwit.http.http_client import HttpClient
from godwit.web.directory import Directory


@contextlib.asynccontextmanager
async def proposing(folder: Path) -> AsyncIterator[Directory]:
    settings = CoordinatorSettings(
        listen="127.0.0.1:0", state=str(folder), report_s=0.5, dry_run=True
    )
    async with CoordinatorServer(settings) as server, HttpClient(server.url) as caller:
        for number in (1, 2):
            broker = coordinator_api.RegisterBroker(f"B{number}", f"godwit://127.0.0.1:{number}")
            await caller.call(coordinator_api.REGISTER_BROKER, broker)
        reporting = asyncio.create_task(report(caller))
        await until(lambda: bool(server.core.memory.moves))
        yield Directory(coordinator=lambda: server.url)
        reporting.cancel()
        await asyncio.gather(reporting, return_exceptions=True)


async def report(caller: HttpClient) -> None:
    """Again and again, as brokers do: two subscribers at B1, none at B2."""
    b1, b2 = (
        BrokerAccount(
            broker=name, start="1", pid=1, started_s=1.0, url=f"godwit://{name}", clients=clients
        )
        for name, clients in (("B1", 2), ("B2", 0))
    )
    crowded = coordinator_api.LoadReport(
        "B1", 1.0, 2.0, {7: 10.0}, {"ann": [7], "bob": [7]}, account=b1
    )
    empty = coordinator_api.LoadReport("B2", 0.0, 0.0, account=b2)
    while True:
        for each in (crowded, empty):
            await caller.call(coordinator_api.LOAD_REPORT, each)
        await asyncio.sleep(0.2)
