"""A coordinator in a dry run that proposes to move one of two subscribers."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from tests.asynchronous import until

from godwit.api import coordinator_api
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
        crowded = coordinator_api.LoadReport("B1", 1.0, 2.0, {7: 10.0}, {"ann": [7], "bob": [7]})
        await caller.call(coordinator_api.LOAD_REPORT, crowded)
        await caller.call(coordinator_api.LOAD_REPORT, coordinator_api.LoadReport("B2", 0.0, 0.0))
        await until(lambda: bool(server.core.memory.moves))
        yield Directory(coordinator=lambda: server.url)
