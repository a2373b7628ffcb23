"""Starts a broker on a free loopback port, and client processes; stops all of them.

Invariant P1: no process outlives its `with` block, even on failure, Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import multiprocessing
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

LOOPBACK = "127.0.0.1"
STARTING_MAX_S = 60.0
STOPPING_MAX_S = 10.0
POLL_S = 0.05
ANSWER_MAX_S = 120.0
LOG_CHARACTERS_SHOWN = 2_000


class PeerError(Exception):
    """A peer did not start, or gave a wrong answer."""


def free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as server:
        port: int = server.getsockname()[1]
        return port


@contextmanager
def running(command: Sequence[str], *, port: int, log: Path) -> Iterator[None]:
    """A broker that accepts connections on `port`."""
    with _sigterm_as_exit(), log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)  # noqa: S603 (our own)
        try:
            _wait_until_open(process, port, log)
            yield
        finally:
            process.terminate()
            try:
                process.wait(STOPPING_MAX_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def client(work: Callable[..., None], *arguments: object) -> Iterator[Connection]:
    """A process that runs `work(line, *arguments)`; entered after its first message."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_run_client, args=(work, theirs, *arguments), daemon=True)
    process.start()
    theirs.close()  # So that each side notices when the other ends.
    try:
        answer(ours)
        yield ours
    finally:
        process.terminate()
        process.join(STOPPING_MAX_S)
        if process.is_alive():
            process.kill()
            process.join()
        ours.close()


def answer(line: Connection) -> Any:
    """The next message of the client process."""
    if not line.poll(ANSWER_MAX_S):
        raise PeerError("a client process does not answer")
    try:
        return line.recv()
    except (EOFError, ConnectionResetError):
        raise PeerError("a client process has failed; its error is on the terminal") from None


def _run_client(work: Callable[..., None], line: Connection, *arguments: object) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends us.
    work(line, *arguments)


def _wait_until_open(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline_s = time.monotonic() + STARTING_MAX_S
    while process.poll() is None and time.monotonic() < deadline_s:
        try:
            socket.create_connection((LOOPBACK, port), POLL_S).close()
        except OSError:
            time.sleep(POLL_S)
        else:
            return
    logged = log.read_text(errors="replace")[-LOG_CHARACTERS_SHOWN:]
    raise PeerError(f"{process.args!r} does not listen on port {port}; it logged:\n{logged}")


@contextmanager
def _sigterm_as_exit() -> Iterator[None]:
    """Runs `finally` clauses on SIGTERM, too."""

    def leave(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
