"""A coordinator process, and somebody who reports for brokers."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from godwit.client import Client
from godwit.errors import GodwitError
from godwit.network.processes import Processes
from godwit.rest import bcs
from godwit.rest.calling import Caller
from godwit.rest.errors import RestError


class CoordinatorProcess:
    """On a leash, like a broker of `Processes`; on the same port when it is started again."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._folder = folder
        self._options = options
        self._listen = "127.0.0.1:0"
        self._process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"http://{self._listen}"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process is not None:
            await self.end(signal.SIGTERM)

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "godwit", "coordinator", "--leash", "--listen", self._listen,
            "--state", str(self._folder), "--log-level", "warning", *self._options,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        line = (await self._process.stdout.readline()).decode()
        assert "answers on" in line, f"it ended with code {await self._process.wait()}"
        self._listen = line.split()[-1].removeprefix("http://")

    async def end(self, by: signal.Signals) -> int:
        """Its exit code."""
        assert self._process is not None
        process, self._process = self._process, None
        process.send_signal(by)
        code = await asyncio.wait_for(process.wait(), 15)
        process._transport.close()  # type: ignore[attr-defined]
        return code


def registrations(
    running: Processes, locations: Mapping[str, bcs.Location]
) -> list[bcs.RegisterBroker]:
    return [
        bcs.RegisterBroker(
            broker.id, running.url(broker.id), running.http(broker.id), locations.get(broker.id)
        )
        for broker in running.network.broker
    ]


@contextlib.asynccontextmanager
async def reporting(
    caller: Caller,
    brokers: list[bcs.RegisterBroker],
    clients: list[Client],
    holds: Callable[[Client], list[int]],
    rates: Mapping[int, float],
) -> AsyncIterator[None]:
    """Brokers that say where clients really are, and what they would hold in the data cluster."""

    async def report(broker: bcs.RegisterBroker) -> None:
        here = {c.name: holds(c) for c in clients if c.session.broker == broker.broker}
        known = {be: rates[be] for held in here.values() for be in held}
        try:
            await caller.call(bcs.LOAD_REPORT, bcs.LoadReport(broker.broker, 0, 0, known, here))
        except RestError:
            await caller.call(bcs.REGISTER_BROKER, broker)

    async def go_on() -> None:
        while True:
            for broker in brokers:
                with contextlib.suppress(GodwitError):  # It may not be there just now.
                    await report(broker)
            await asyncio.sleep(0.1)

    task = asyncio.create_task(go_on())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
