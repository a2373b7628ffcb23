"""Forks broker processes: `python -m godwit.testing.nemesis.fork_server FD`, used by forks.py.

A broker spends most of its start on imports, and a run starts twenty of them.  This process has
imported everything and forks a broker for each request: a process of its own, as any other, that is
there in a tenth of the time.  Requests come on the socket FD, with the files for standard output
and standard error; the answers are the process id, and later how the process ended.

It has one thread and no event loop, so that a fork is safe.  All processes have the standard input
of this one, which is their leash.
"""

from __future__ import annotations

import importlib
import os
import runpy
import select
import signal
import socket
import sys
import traceback
from types import FrameType
from typing import NoReturn

import msgspec

REQUEST_BYTES_MAX = 65_536


class ForkRequest(msgspec.Struct, frozen=True):
    arguments: list[str]
    """Of the command `godwit`."""

    environment: dict[str, str]


class ForkNews(msgspec.Struct, frozen=True):
    """A process was forked, or has ended."""

    pid: int
    code: int | None = None


def main() -> None:
    importlib.import_module("godwit.cli")  # What a new process would import; used by `godwit`.
    requests = socket.socket(fileno=int(sys.argv[1]))
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _ignore)
    while True:
        ready, _, _ = select.select([requests.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            for news in _ended():
                requests.send(msgspec.json.encode(news))
        if requests.fileno() in ready:
            body, files, _, _ = socket.recv_fds(requests, REQUEST_BYTES_MAX, 2)
            if not body:
                return
            pid = os.fork()
            if not pid:
                for end in (requests.detach(), woken, wake):
                    os.close(end)
                _be_broker(msgspec.json.decode(body, type=ForkRequest), files)
            for file in files:
                os.close(file)
            requests.send(msgspec.json.encode(ForkNews(pid)))


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """A signal with a handler wakes `select`."""


def _ended() -> list[ForkNews]:
    found: list[ForkNews] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if not pid:
            return found
        found.append(ForkNews(pid, os.waitstatus_to_exitcode(status)))


def _be_broker(request: ForkRequest, files: list[int]) -> NoReturn:
    """Do what a new process would do."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, file in enumerate(files, start=1):
            os.dup2(file, number)
            os.close(file)
        os.environ.update(request.environment)
        sys.argv = ["godwit", *request.arguments]
        runpy.run_module("godwit", run_name="__main__")
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001  As the interpreter would.
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
