"""Broker processes that are forked: they start in a tenth of the time; see fork_server.py."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from godwit.errors import GodwitError
from godwit.runtime.processes import STOP_S
from godwit.testing.nemesis.clocks import tidy_up
from godwit.testing.nemesis.fork_server import REQUEST_BYTES_MAX, ForkNews, ForkRequest


class ForkedProcess:
    """One process, as those of `asyncio.subprocess`."""

    def __init__(self, pid: int, stdout: asyncio.StreamReader) -> None:
        self.pid = pid
        self.stdout = stdout
        self.returncode: int | None = None
        self._is_over = asyncio.Event()

    def send_signal(self, number: signal.Signals) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    async def wait(self) -> int:
        await self._is_over.wait()
        assert self.returncode is not None
        return self.returncode

    async def ended(self) -> int:
        """Wait for it after it was asked to stop; after STOP_S, kill it."""
        try:
            async with asyncio.timeout(STOP_S):
                return await self.wait()
        except TimeoutError:
            self.send_signal(signal.SIGKILL)
            return await self.wait()

    def on_end(self, code: int) -> None:
        self.returncode = code
        self._is_over.set()


class Forks:
    """`async with Forks(environment) as forks:` starts the server; it ends with all processes."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """`environment` is added to that of this process."""
        self._environment = {**os.environ, **environment, "OPENBLAS_NUM_THREADS": "1"}
        self._server: asyncio.subprocess.Process | None = None
        self._socket, self._far_socket = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._asked: deque[tuple[asyncio.StreamReader, asyncio.Future[ForkedProcess]]] = deque()
        self._running: dict[int, ForkedProcess] = {}
        self._pipes: set[asyncio.BaseTransport] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "godwit.testing.nemesis.fork_server",
            str(self._far_socket.fileno()),
            stdin=asyncio.subprocess.PIPE,
            pass_fds=[self._far_socket.fileno()],
            env=self._environment,
        )  # fmt: skip
        self._far_socket.close()
        self._socket.setblocking(False)
        asyncio.get_running_loop().add_reader(self._socket.fileno(), self._on_news)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        asyncio.get_running_loop().remove_reader(self._socket.fileno())
        self._socket.close()
        for pipe in self._pipes:
            pipe.close()
        assert self._server is not None
        await self._server.communicate()
        tidy_up(self._server.pid)

    async def start(
        self, arguments: list[str], environment: Mapping[str, str], log: Path
    ) -> ForkedProcess:
        """`godwit` with these arguments; standard error is appended to `log`."""
        loop = asyncio.get_running_loop()
        started: asyncio.Future[ForkedProcess] = loop.create_future()
        out, far_out = os.pipe()
        stdout = asyncio.StreamReader()
        pipe, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stdout), os.fdopen(out, "rb", 0)
        )
        self._pipes.add(pipe)
        with log.open("a") as errors:
            request = msgspec.json.encode(ForkRequest(arguments, dict(environment)))
            self._asked.append((stdout, started))
            socket.send_fds(self._socket, [request], [far_out, errors.fileno()])
        os.close(far_out)
        return await started

    def _on_news(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while body := self._socket.recv(REQUEST_BYTES_MAX):
                news = msgspec.json.decode(body, type=ForkNews)
                if news.code is None:
                    stdout, started = self._asked.popleft()
                    self._running[news.pid] = ForkedProcess(news.pid, stdout)
                    if not started.done():  # The caller was not cancelled.
                        started.set_result(self._running[news.pid])
                else:
                    self._running.pop(news.pid).on_end(news.code)
            asyncio.get_running_loop().remove_reader(self._socket.fileno())
            for _, started in self._asked:
                started.set_exception(GodwitError("the fork server has ended"))
