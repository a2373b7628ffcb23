"""A TCP proxy for tests that fails as networks do."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from godwit.protocol.addresses import address


class Proxy:
    """`async with Proxy() as proxy:` listens; connections are forwarded to `proxy.target`."""

    def __init__(self) -> None:
        self.target = ""
        """HOST:PORT."""
        self.port = 0
        self.calls = 0
        """Connections accepted so far."""
        self._server: asyncio.Server | None = None
        self._left_bytes: int | None = None
        self._flows = asyncio.Event()
        self._flows.set()
        self._calls: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

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
        for call in self._calls:
            call.cancel()
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
        for writer in self._writers:
            writer.transport.abort()
        self._flows.set()

    def cut_after(self, size_bytes: int) -> None:
        """Forward so many bytes, then close that connection: in the middle of a frame."""
        self._left_bytes = size_bytes

    def stall(self) -> None:
        """Keep connections open, and forward nothing."""
        self._flows.clear()

    def flow(self) -> None:
        self._flows.set()

    def _on_call(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.calls += 1
        task = asyncio.create_task(self._connect(reader, writer))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            far_reader, far_writer = await asyncio.open_connection(*address(self.target))
        except OSError:
            writer.transport.abort()
            self._writers.discard(writer)
            return
        self._writers.add(far_writer)
        try:
            ways = {
                asyncio.create_task(self._forward(reader, far_writer)),
                asyncio.create_task(self._forward(far_reader, writer)),
            }
            await asyncio.wait(ways)
        finally:
            for each in (writer, far_writer):
                each.transport.abort()
                self._writers.discard(each)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                await self._flows.wait()
                if self._left_bytes is not None:
                    data = data[: self._left_bytes]
                    self._left_bytes -= len(data)
                writer.write(data)
                await writer.drain()
                if self._left_bytes == 0:
                    self._left_bytes = None
                    break
            writer.write_eof()
        except (OSError, RuntimeError):  # It was dropped.
            writer.transport.abort()
