"""Processes of `godwit` that are forked: they start in a tenth of the time; see fork_server.py.

    process = await shared_forks().start(["broker", "--id", "B1", "--leash"])

The process that forks them is started when it is first needed, and ends with this one.  It is not
bound to an event loop: each process that it has forked has a channel of its own.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import errno
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO

import msgspec

from godwit.errors import GodwitError
from godwit.runtime.fork_server import REQUEST, ROOM, SIGNAL, STALE, ForkRequest

log = logging.getLogger("godwit.forks")

PROGRAM = "from godwit.runtime.fork_server import main; main()"
#: The exit code of a process whose parent has died: the true one is not known.
UNKNOWN_CODE = 255
#: Until there is room for a request.
PAUSE_S = 0.01


class _StaleError(GodwitError):
    """Code has changed since it was imported."""


class _Output(asyncio.StreamReaderProtocol):
    def eof_received(self) -> bool:
        super().eof_received()
        return False  # Close the pipe, in every kind of loop.


class ForkedProcess:
    """One process, as those of `asyncio.subprocess`; `close` it unless it ends by itself."""

    def __init__(self, channel: socket.socket, leash: int) -> None:
        self.pid = 0
        self.stdout = asyncio.StreamReader()
        self.returncode: int | None = None
        self._channel = channel
        self._leash: int | None = leash
        """It stops when this is closed."""
        self._pipe: asyncio.BaseTransport | None = None
        self._said = b""
        self._trouble = ""
        self._is_forked = asyncio.Event()
        self._is_over = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        channel.setblocking(False)
        self._loop.add_reader(channel.fileno(), self._on_news)

    async def read_from(self, out: int) -> None:
        """Its standard output is the other end of this pipe."""
        self._pipe, _ = await self._loop.connect_read_pipe(
            lambda: _Output(self.stdout), os.fdopen(out, "rb", 0)
        )

    async def forked(self) -> None:
        """Wait until it is there; GodwitError if that cannot be."""
        await self._is_forked.wait()
        if self._trouble:
            raise (_StaleError if self._trouble == STALE else GodwitError)(self._trouble)

    def send_signal(self, number: signal.Signals, *, to_group: bool = False) -> None:
        """Nothing happens if it has ended.  `to_group`: to all processes that it has started."""
        if self._channel.fileno() >= 0:
            with contextlib.suppress(ConnectionError):  # `_on_news` will hear of it.
                self._channel.send(SIGNAL.pack(-number if to_group else number))

    async def wait(self) -> int:
        await self._is_over.wait()
        assert self.returncode is not None
        return self.returncode

    def close(self) -> None:
        """Close our ends of the pipes; if it has not ended, it is killed."""
        if self.pid and self.returncode is None:
            self.send_signal(signal.SIGKILL)
        self._close_channel()
        self._drop_leash()
        if self._pipe is not None:
            self._pipe.close()

    def _close_channel(self) -> None:
        if self._channel.fileno() >= 0:
            self._loop.remove_reader(self._channel.fileno())
            self._channel.close()

    def _drop_leash(self) -> None:
        if self._leash is not None:
            os.close(self._leash)
            self._leash = None

    def _on_news(self) -> None:
        try:
            data = self._channel.recv(4096)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        *lines, self._said = (self._said + data).split(b"\n")
        for line in lines:
            if not self._is_forked.is_set():
                self._on_forked(line.decode())
            else:
                self._on_end(int(line))
        if not data:
            self._on_silence()

    def _on_forked(self, said: str) -> None:
        if said.isdecimal():
            self.pid = int(said)
        else:
            self._trouble = said
        self._is_forked.set()

    def _on_end(self, code: int) -> None:
        self.returncode = code
        self._is_over.set()
        self._close_channel()
        self._drop_leash()

    def _on_silence(self) -> None:
        """The process that has forked it, or should have, is dead."""
        if self.pid:
            # It still runs, and its end cannot be noticed; without a leash it stops.
            log.error("the process that forks others has died", extra={"child": self.pid})
        elif not self._trouble:
            self._trouble = "the process that forks others has died"
        self._is_forked.set()
        self._on_end(UNKNOWN_CODE)


class Forks:
    def __init__(
        self, environment: Mapping[str, str] | None = None, *, are_apart: bool = True
    ) -> None:
        """`environment` is for the process that forks, in addition to that of this one.

        `are_apart`: the processes have sessions of their own, so that Ctrl-C is only for us.
        """
        self._environment = environment or {}
        self._are_apart = are_apart
        self._server: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None
        self._retired: list[subprocess.Popen[bytes]] = []
        """They wait for processes that they have forked."""
        self._owner = 0
        self._opening = threading.Lock()

    @property
    def server_pid(self) -> int | None:
        """The process that forks; None if there is none yet."""
        return None if self._server is None else self._server.pid

    async def start(
        self,
        arguments: Sequence[str],
        *,
        modules: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        stderr: int = 2,
        listener: socket.socket | None = None,
    ) -> ForkedProcess:
        """`godwit` with these arguments, in our folder and, unless another is given, environment.

        `modules` are those that it will need.  It is given a copy of `listener`, as --listen-fd.
        """
        given = os.environb if environment is None else _encoded(environment)
        request = ForkRequest(
            arguments=[os.fsencode(argument) for argument in arguments],
            modules=list(modules),
            environment=dict(given),
            folder=bytes(Path.cwd()),
            umask=_umask(),
            is_apart=self._are_apart,
        )
        while True:
            asked = self._running()
            with contextlib.suppress(_StaleError):
                return await self._ask(request, stderr, listener)
            self._retire(asked)

    async def _ask(
        self, request: ForkRequest, stderr: int, listener: socket.socket | None
    ) -> ForkedProcess:
        channel, far_channel = socket.socketpair()
        far_leash, leash = os.pipe()
        out, far_out = os.pipe()
        process = ForkedProcess(channel, leash)
        try:
            with contextlib.ExitStack() as far_ends:
                far_ends.enter_context(far_channel)
                for end in (far_leash, far_out):
                    far_ends.callback(os.close, end)
                await process.read_from(out)
                body = far_ends.enter_context(_file_with(msgspec.msgpack.encode(request)))
                files = [body.fileno(), far_leash, far_out, stderr, far_channel.fileno()]
                await self._send(files if listener is None else [*files, listener.fileno()])
            await process.forked()
        except BaseException:
            process.close()
            raise
        return process

    async def _send(self, files: list[int]) -> None:
        while True:
            try:
                socket.send_fds(self._running(), [REQUEST], files)
            except ConnectionError:  # It has died.  Another one can do its work.
                self.close()
            except OSError as error:
                if error.errno not in {errno.EAGAIN, errno.ETOOMANYREFS}:
                    raise
                await asyncio.sleep(PAUSE_S)  # It still imports, and many have asked already.
            else:
                return

    def _retire(self, stale: socket.socket) -> None:
        """Let the server end when all its processes have, unless that was done already."""
        if self._requests is stale and self._server is not None:
            stale.close()
            self._retired = [each for each in self._retired if each.poll() is None]
            self._retired.append(self._server)
            self._requests = self._server = None

    def _running(self) -> socket.socket:
        with self._opening:
            if self._requests is None or self._owner != os.getpid():  # We may have been forked.
                self._requests = self._open()
                self._owner = os.getpid()
            return self._requests

    def _open(self) -> socket.socket:
        requests, far = socket.socketpair()
        requests.setblocking(False)
        with far:
            self._server = subprocess.Popen(  # noqa: S603  Ourselves.
                [sys.executable, "-c", PROGRAM, str(far.fileno()), ROOM],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                # A library that has threads of its own would not work in forked processes.
                env={**os.environ, **self._environment, "OPENBLAS_NUM_THREADS": "1"},
                pass_fds=[far.fileno()],
                start_new_session=self._are_apart,
            )
        atexit.register(self.close)
        return requests

    def close(self) -> None:
        """End the process that forks, which has nothing to lose.  Another `start` is possible."""
        atexit.unregister(self.close)
        if self._requests is not None:
            self._requests.close()
        if self._owner == os.getpid():
            for server in filter(None, [*self._retired, self._server]):
                server.kill()
                server.wait()
        self._requests = self._server = None
        self._retired = []


@cache
def shared_forks() -> Forks:
    """For all processes that need nothing special."""
    return Forks()


def _encoded(environment: Mapping[str, str]) -> dict[bytes, bytes]:
    return {os.fsencode(name): os.fsencode(value) for name, value in environment.items()}


def _file_with(body: bytes) -> IO[bytes]:
    """A file without a name.  A message has a size limit, and an environment has not."""
    file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  The caller closes it.
    file.write(body)
    return file


def _umask() -> int:
    """It can only be read by setting it: for a moment, files of other threads are private."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
