"""A TCP proxy that fails as networks do.

    async with Proxy() as proxy:
        proxy.target = "127.0.0.1:7401"
        ...                             # call proxy.url instead of the target
        proxy.stall(Way.FORTH)          # what callers send does not arrive; the answers do

A way that is stalled loses nothing: bytes, and the end of a connection, wait until it flows again.
So does TCP itself, which repeats what a network has not delivered.
"""

from __future__ import annotations

import asyncio
import contextlib
from enum import Enum
from types import TracebackType
from typing import Self

from godwit.protocol.addresses import address

READ_BYTES = 65_536


class Way(Enum):
    FORTH = "from the caller to the target"
    BACK = "from the target to the caller"


class Proxy:
    """`async with Proxy() as proxy:` listens; connections are forwarded to `proxy.target`."""

    def __init__(self) -> None:
        self.target = ""
        """HOST:PORT."""
        self.port = 0
        self.calls = 0
        """Connections accepted so far."""
        self.delay_s = 0.0
        """Each read waits so long before it is passed on."""
        self._server: asyncio.Server | None = None
        self._left_bytes: int | None = None
        self._flows = {way: asyncio.Event() for way in Way}
        self.flow()
        self._calls: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"godwit://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        await self.accept()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.refuse()
        await asyncio.gather(*self._calls, return_exceptions=True)

    async def accept(self) -> None:
        """Accept connections, on the same port as before."""
        self._server = await asyncio.start_server(self._on_call, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def refuse(self) -> None:
        """Accept no more connections, and drop the present ones."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.drop()

    def drop(self) -> None:
        """Drop all connections; what is in the buffers is lost."""
        for call in self._calls:
            call.cancel()

    def cut_after(self, size_bytes: int) -> None:
        """Forward so many bytes, then close that connection: in the middle of a frame."""
        self._left_bytes = size_bytes

    def stall(self, *ways: Way) -> None:
        """Keep connections open, and forward nothing: one way, or both."""
        for way in ways or Way:
            self._flows[way].clear()

    def flow(self) -> None:
        for event in self._flows.values():
            event.set()

    def _on_call(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.calls += 1
        writers = [writer]
        task = asyncio.create_task(self._connect(reader, writers))
        self._calls.add(task)

        def on_end(task: asyncio.Task[None]) -> None:
            self._calls.discard(task)
            for each in writers:  # Here, as a task that is cancelled at once has not begun.
                each.transport.abort()

        task.add_done_callback(on_end)

    async def _connect(
        self, reader: asyncio.StreamReader, writers: list[asyncio.StreamWriter]
    ) -> None:
        with contextlib.suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection(*address(self.target))
            writers.append(far_writer)
            async with asyncio.TaskGroup() as ways:
                ways.create_task(self._forward(Way.FORTH, reader, far_writer))
                ways.create_task(self._forward(Way.BACK, far_reader, writers[0]))

    async def _forward(
        self, way: Way, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        flows = self._flows[way]
        try:
            while data := await reader.read(READ_BYTES):
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                await flows.wait()
                if self._left_bytes is not None:
                    data = data[: self._left_bytes]
                    self._left_bytes -= len(data)
                writer.write(data)
                await writer.drain()
                if self._left_bytes == 0:
                    self._left_bytes = None
                    break
            await flows.wait()
            writer.write_eof()
        except (OSError, RuntimeError):  # One end has reset the connection.
            await flows.wait()
            writer.transport.abort()
