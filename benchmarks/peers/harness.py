"""Measures a broker from outside: its process, one subscriber process, one publisher process.

    publisher ──records──▶ broker ──deliveries──▶ subscriber       all on the loopback interface

Both clients are raw sockets, because with the usual client libraries the client is what would be
measured.  The publisher sends frames that were encoded before, in one large write.  The subscriber
only counts while the clock is running, by a byte that ends every delivery, and reads what it got
afterwards.  The clock runs from before the first record is sent to the last delivery received.

A measurement is a few rounds of growing size on the same connections: a small one tells how many
records fit into the time, and warms up what compiles while it runs.  The last round counts.

Invariants:
H1  In every round each subscription gets the records that match it, in the order in which they were
    published, and nothing else; otherwise there is no figure but a PeerError.
H2  No process outlives its `with` block: not on failure, not on Ctrl-C, not on SIGTERM.
"""

from __future__ import annotations

import multiprocessing
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import ClassVar

from benchmarks.forwarding_workloads import ForwardingWorkload
from godwit.content.values import Record

LOOPBACK = "127.0.0.1"
STARTING_MAX_S = 60.0
STOPPING_MAX_S = 10.0
#: A round that takes this long is the one that counts ...
ROUND_MIN_S = 3.0
#: ... this is what is aimed at, and after the last is given up.
ROUND_AIM_S = 5.0
ROUND_MAX_S = 20.0
#: How long the subscriber waits for deliveries that should not come.
QUIET_S = 0.2
FIRST_ROUND_RECORDS = 200
GROWTH_MAX = 10.0
RECEIVE_BYTES = 1 << 20

#: The number of a filter and the number of a record that was delivered for it.
Delivery = tuple[int, int]


class PeerError(Exception):
    """A peer did not start, or did not do what it was asked to."""


class Wire(ABC):
    """What a peer's clients say to it.  Holds the subscriptions; travels to other processes."""

    #: Is in every delivery exactly once, as its last byte.
    end_of_delivery: ClassVar[bytes]

    @abstractmethod
    def log_in(self, connection: socket.socket) -> None:
        """Return when the broker has accepted the client."""

    @abstractmethod
    def subscribe(self, connection: socket.socket) -> None:
        """Return when the broker has confirmed all subscriptions."""

    @abstractmethod
    def encode(self, record: Record) -> bytes:
        """The frame that publishes `record`."""

    @abstractmethod
    def deliveries(self, stream: bytes) -> Iterator[Delivery]:
        """What a subscriber was sent, in the order of arrival."""


def published_per_s(wire: Wire, workload: ForwardingWorkload, port: int) -> float:
    """Records per second through the broker that listens on `port`."""
    frames = [wire.encode(record) for record in workload.records]
    with ExitStack() as stack:
        publisher = stack.enter_context(_client(_publish, wire, port, frames))
        subscriber = stack.enter_context(_client(_receive, wire, port))
        count = min(FIRST_ROUND_RECORDS, len(frames))
        while True:
            taken_s = _round(publisher, subscriber, workload, count)
            if taken_s >= ROUND_MIN_S or count == len(frames):
                return count / taken_s
            growth = min(max(ROUND_AIM_S / taken_s, 2.0), GROWTH_MAX)
            count = min(int(count * growth), len(frames))


def free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as server:
        port: int = server.getsockname()[1]
        return port


@contextmanager
def running(command: Sequence[str], *, port: int, log: Path) -> Iterator[None]:
    """A broker process that accepts connections on `port` and is stopped at the end."""
    with _sigterm_raises(), log.open("wb") as output:
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


def exchange(connection: socket.socket, request: bytes, answer_end: bytes) -> bytes:
    """Send `request` and return what comes back up to and including `answer_end`."""
    connection.sendall(request)
    answer = b""
    while not answer.endswith(answer_end):
        chunk = connection.recv(RECEIVE_BYTES)
        if not chunk:
            raise PeerError(f"the broker closed the connection: {answer!r}")
        answer += chunk
    return answer


def _round(
    publisher: Connection, subscriber: Connection, workload: ForwardingWorkload, count: int
) -> float:
    """The seconds that the first `count` records take."""
    matches = workload.matches[:count]
    subscriber.send(sum(map(len, matches)))
    publisher.send(count)
    start_s: float = _answer(publisher)
    end_s: float
    received: list[Delivery]
    end_s, received = _answer(subscriber)
    _check(received, matches)
    return end_s - start_s


def _check(received: Iterable[Delivery], matches: Iterable[Sequence[int]]) -> None:
    """H1: for each filter the same records, in the same order."""
    wanted: dict[int, list[int]] = defaultdict(list)
    for record, filters in enumerate(matches):
        for filter in filters:
            wanted[filter].append(record)
    got: dict[int, list[int]] = defaultdict(list)
    for filter, record in received:
        got[filter].append(record)
    for filter in sorted(wanted.keys() | got.keys()):
        if wanted[filter] != got[filter]:
            raise PeerError(
                f"{sum(map(len, wanted.values()))} deliveries were due,"
                f" {sum(map(len, got.values()))} came; filter {filter} should get"
                f" {len(wanted[filter])} records, {wanted[filter][:5]} and so on,"
                f" but got {len(got[filter])}: {got[filter][:5]}"
            )


@contextmanager
def _client(work: Callable[..., None], *arguments: object) -> Iterator[Connection]:
    """A process that runs `work`, ready when this is entered, with a line to talk to it."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs, *arguments), daemon=True)
    process.start()
    theirs.close()  # So that we notice when the process has ended, and it when we have.
    try:
        _answer(ours)
        yield ours
    finally:
        process.terminate()
        process.join(STOPPING_MAX_S)
        if process.is_alive():
            process.kill()
            process.join()
        ours.close()


def _answer(line: Connection) -> object:
    if not line.poll(STARTING_MAX_S + ROUND_MAX_S):
        raise PeerError("a client process does not answer")
    try:
        return line.recv()
    except EOFError:
        raise PeerError("a client process has failed; its error is above") from None


def _publish(line: Connection, wire: Wire, port: int, frames: Sequence[bytes]) -> None:
    """The publisher process: for every number n received, publish the first n frames."""
    with socket.create_connection((LOOPBACK, port), STARTING_MAX_S) as connection:
        wire.log_in(connection)
        line.send(None)
        while True:
            data = b"".join(frames[: line.recv()])
            start_s = time.monotonic()  # Of the system, not of the process: can be compared.
            connection.sendall(data)
            line.send(start_s)


def _receive(line: Connection, wire: Wire, port: int) -> None:
    """The subscriber process: for every number n received, wait for n deliveries."""
    with socket.create_connection((LOOPBACK, port), STARTING_MAX_S) as connection:
        wire.log_in(connection)
        wire.subscribe(connection)
        line.send(None)
        while True:
            missing, deadline_s = line.recv(), time.monotonic() + ROUND_MAX_S
            chunks: list[bytes] = []
            end_s = deadline_s
            ...
