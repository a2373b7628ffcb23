"""Forks processes of `godwit`; forks.py starts it and asks it.

A broker spends most of its start on imports.  This process has imported everything and forks one
for each request: a process of its own, as any other, that is there in a tenth of the time.

A request is one byte on the socket that we are given, which carries files: the request itself,
what will be the standard input, output and error of the process, its channel, and for some a socket
to listen on.  On the channel, whoever asked is told the process id, and later the exit code;
numbers of signals come back.  They go through here because only the parent knows that a process id
still means the same process.  If this process dies, all channels end.

When a file has changed that it has imported, it forks nothing any more and says so: a broker that
is started again after an upgrade must be the new one.  It stays until its processes have ended.

It has one thread and no event loop, so that a fork is safe.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import random
import runpy
import select
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

import msgspec

#: On the socket: a request.
REQUEST = b"f"
#: The request, standard input, output and error, the channel, a socket to listen on.
FILES_MAX = 6
#: On a channel: signals for a process; negative ones are for its whole group.
SIGNAL = struct.Struct("b")
#: On a channel, instead of a process id: ask another server, which will import what is there now.
STALE = "stale"
#: What every command imports when it reads its options and files.
LATE_MODULES = ("importlib.metadata", "tomllib", "typer._adapters")
#: An argument without meaning: /proc/PID/cmdline of a forked process has room for its arguments.
ROOM = " " * 1_000


class ForkRequest(msgspec.Struct, frozen=True):
    arguments: list[bytes]
    """Of the command `godwit`.  A socket to listen on is added, as the option --listen-fd."""

    modules: list[str]
    """That it will need: they are imported before, and so only once."""

    environment: dict[bytes, bytes]
    folder: bytes
    umask: int
    is_apart: bool
    """It has a session of its own, so that Ctrl-C does not reach it."""


class ForkServer:
    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._imported: set[str] = set()
        self._code: dict[str, int] = {}
        """The files that were imported, and when they were written."""
        self._channels: dict[int, socket.socket] = {}
        """By process id."""
        self._ready = select.poll()
        self._woken, self._wake = os.pipe()
        for end in (self._woken, self._wake):
            os.set_blocking(end, False)
        for file in (self._woken, requests.fileno()):
            self._ready.register(file, select.POLLIN)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _ignore)
        # Ctrl-C is not for this process.  Forked ones have the handler that it was started with.
        self._on_interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)

    def serve(self) -> tuple[ForkRequest, int | None] | None:
        """Returns in each forked process: what it is, and where it listens.

        Returns None in this one, when the other end has closed the socket and all channels.
        """
        while self._requests.fileno() >= 0 or self._channels:
            ready = {file for file, _ in self._ready.poll()}
            if self._woken in ready:
                os.read(self._woken, 4096)
                self._tell_ends()
            for pid, channel in list(self._channels.items()):
                if channel.fileno() in ready:
                    self._pass_signals(pid, channel)
            if self._requests.fileno() in ready:
                word, files, _, _ = socket.recv_fds(self._requests, len(REQUEST), FILES_MAX)
                if not word:
                    self._ready.unregister(self._requests)
                    self._requests.close()
                elif (forked := self._fork(*files)) is not None:
                    return forked
        return None

    def _tell_ends(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            channel = self._channels.get(pid)
            if channel is not None:
                _tell(channel, os.waitstatus_to_exitcode(status))
                self._forget(pid)

    def _forget(self, pid: int) -> None:
        channel = self._channels.pop(pid)
        self._ready.unregister(channel)
        channel.close()

    def _pass_signals(self, pid: int, channel: socket.socket) -> None:
        try:
            data = channel.recv(4096)
        except ConnectionError:
            data = b""
        for (number,) in SIGNAL.iter_unpack(data):
            with contextlib.suppress(ProcessLookupError):
                if number < 0 and os.getpgid(pid) == pid:
                    os.killpg(pid, -number)
                else:
                    os.kill(pid, abs(number))
        if not data:  # Nobody wants to know how it ends.
            self._forget(pid)

    def _fork(
        self, asked: int, leash: int, out: int, errors: int, far: int, listener: int | None = None
    ) -> tuple[ForkRequest, int | None] | None:
        body = os.pread(asked, os.fstat(asked).st_size, 0)
        request = msgspec.msgpack.decode(body, type=ForkRequest)
        channel = socket.socket(fileno=far)
        pid = self._forked(request.modules, channel)
        if pid == 0:
            channel.close()
            self._let_go()
            for number, file in enumerate((leash, out, errors)):
                os.dup2(file, number)
        for file in (asked, leash, out, errors):
            os.close(file)
        if pid == 0:
            return request, listener
        if listener is not None:
            os.close(listener)
        if pid is None:
            channel.close()
        else:
            _tell(channel, pid)
            self._channels[pid] = channel
            self._ready.register(channel, select.POLLIN)
        return None

    def _forked(self, modules: Sequence[str], channel: socket.socket) -> int | None:
        """The process id, which is 0 in the process itself; None if there is none."""
        if _written_at(self._code) != self._code:
            _tell(channel, STALE)
            return None
        self._import(modules)
        if _is_over(channel):
            return None
        try:
            return os.fork()
        except OSError as error:
            _tell(channel, f"cannot start a process: {error.strerror}")
            return None

    def _import(self, modules: Sequence[str]) -> None:
        missing = [each for each in (*modules, *LATE_MODULES) if each not in self._imported]
        if not missing:
            return
        for module in missing:
            with contextlib.suppress(Exception):  # The process will say what is wrong with it.
                importlib.import_module(module)
        self._imported.update(missing)
        known = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
        self._code = _written_at(filter(None, known)) | self._code
        # Objects that are there for good: if they were looked at, their pages would be copied.
        gc.collect()
        gc.freeze()

    def _let_go(self) -> None:
        """In a forked process: what is ours is not its own.  All other files are not inherited."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, self._on_interrupt)
        for own in (self._requests, *self._channels.values()):
            own.close()
        for end in (self._woken, self._wake):
            os.close(end)


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """A signal with a handler wakes `poll`."""


def _tell(channel: socket.socket, news: object) -> None:
    with contextlib.suppress(ConnectionError):
        channel.send(f"{news}\n".encode())


def _is_over(channel: socket.socket) -> bool:
    """Whether whoever asked does not wait any more, perhaps because of the time that we took."""
    try:
        return not channel.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def _written_at(files: Iterable[str]) -> dict[str, int]:
    found = {}
    for file in files:
        with contextlib.suppress(OSError):
            found[file] = os.stat(file).st_mtime_ns  # noqa: PTH116  There are a thousand.
    return found


def main() -> None:
    forked = ForkServer(socket.socket(fileno=int(sys.argv[1]))).serve()
    if forked is not None:
        _be(*forked)


def _be(request: ForkRequest, listener: int | None) -> NoReturn:
    """Do what a new process would do."""
    code = 1
    try:
        _settle(request)
        arguments = [os.fsdecode(argument) for argument in request.arguments]
        if listener is not None:
            arguments += ["--listen-fd", str(listener)]
        sys.argv = ["godwit", *arguments]
        _show_arguments()
        runpy.run_module("godwit", run_name="__main__")
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            sys.stderr.write(f"{error.code}\n")
    except BaseException:  # noqa: BLE001  As the interpreter would.
        traceback.print_exc()
    finally:
        # As `multiprocessing` does.  The interpreter would take everything to pieces first.
        with contextlib.suppress(BaseException):
            threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001
            atexit._run_exitfuncs()  # noqa: SLF001
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _settle(request: ForkRequest) -> None:
    """Have what a process has from the one that starts it, and its own chance."""
    if request.is_apart:
        os.setsid()
    os.chdir(request.folder)
    os.umask(request.umask)
    for name in set(os.environb) - set(request.environment):
        del os.environb[name]
    os.environb.update(request.environment)
    time.tzset()
    random.seed()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


def _show_arguments() -> None:
    """Let `ps` show these arguments, not those of the process that has forked this one."""
    with contextlib.suppress(OSError, ValueError, IndexError):  # Only Linux has these files.
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = int(fields[45]), int(fields[46])  # 48 and 49 of all: `man proc`.
        text = b"\0".join(os.fsencode(word) for word in sys.argv)
        with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
            memory.seek(start)
            memory.write(text[: end - start - 1].ljust(end - start, b"\0"))
