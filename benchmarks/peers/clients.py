"""The two client processes, on raw sockets, and what a protocol has to provide for them.

With the usual client libraries it is the client that would be measured.  So the publisher sends
frames that were encoded before, in one large write, and while the clock is running the subscriber
only counts the byte that ends a delivery.  It reads what it got afterwards.

Both talk to the harness over a line: a number comes in, what was done and when goes out.  The
clock is the system's monotonic one, which all processes share.
"""

from __future__ import annotations

import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from typing import ClassVar

from benchmarks.peers.processes import LOOPBACK, PeerError
from godwit.content.values import Record

#: Nobody waits longer than this for the other end of a connection.
WAIT_MAX_S = 20.0
#: How long the subscriber listens for deliveries that should not come.
QUIET_S = 0.2
RECEIVE_BYTES = 1 << 18

#: The number of a filter, and the number of a record that was delivered for it.
Delivery = tuple[int, int]


class Wire(ABC):
    """What a peer and its clients say to each other.  Travels to the client processes."""

    #: The last byte of every delivery, and in no other place of it.
    end_of_delivery: ClassVar[bytes]

    @abstractmethod
    def log_in(self, connection: socket.socket) -> None:
        """Returns when the broker has accepted the client."""

    @abstractmethod
    def subscribe(self, connection: socket.socket) -> None:
        """Returns when the broker has confirmed every subscription."""

    @abstractmethod
    def encode(self, record: Record) -> bytes:
        """The frame that publishes `record`."""

    @abstractmethod
    def deliveries(self, stream: bytes) -> Iterator[Delivery]:
        """What the subscriber was sent, in the order of arrival."""


def publish(line: Connection, wire: Wire, port: int, frames: Sequence[bytes]) -> None:
    """The publisher: for each n received sends the first n frames and says when it began."""
    with _connected(port) as connection:
        wire.log_in(connection)
        line.send(None)
        while count := line.recv():
            data = b"".join(frames[:count])
            start_s = time.monotonic()
            connection.sendall(data)
            line.send(start_s)


def receive(line: Connection, wire: Wire, port: int) -> None:
    """The subscriber: for each n received takes n deliveries and says when the last one came."""
    with _connected(port) as connection:
        wire.log_in(connection)
        wire.subscribe(connection)
        line.send(None)
        while count := line.recv():
            end_s, stream = _received(connection, wire.end_of_delivery, count)
            line.send((end_s, list(wire.deliveries(stream))))


def exchange(connection: socket.socket, request: bytes, *, answer_end: bytes) -> bytes:
    """Sends `request`; returns the answer, which ends with `answer_end`."""
    connection.sendall(request)
    answer = b""
    while not answer.endswith(answer_end):
        chunk = read(connection, WAIT_MAX_S)
        if not chunk:
            raise PeerError(f"the broker should answer {answer_end!r}, but said {answer!r}")
        answer += chunk
    return answer


def _connected(port: int) -> socket.socket:
    return socket.create_connection((LOOPBACK, port), WAIT_MAX_S)


def _received(connection: socket.socket, end: bytes, count: int) -> tuple[float, bytes]:
    """The time of the last of `count` deliveries, and these with all that came after them."""
    chunks: list[bytes] = []
    end_s = 0.0
    while chunk := read(connection, WAIT_MAX_S if count > 0 else QUIET_S):
        chunks.append(chunk)
        if count > 0:
            end_s = time.monotonic()
            count -= chunk.count(end)
    return end_s, b"".join(chunks)


def read(connection: socket.socket, wait_s: float) -> bytes:
    """What has come, or nothing if nothing comes within `wait_s`."""
    connection.settimeout(wait_s)
    try:
        return connection.recv(RECEIVE_BYTES)
    except TimeoutError:
        return b""
