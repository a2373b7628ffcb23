"""The two client processes, on raw sockets, and the interface of a protocol for them.

With the usual client libraries, the client would be the bottleneck.  So the publisher sends frames
encoded in advance, in one large write, and while the clock runs the subscriber only counts the byte
that ends a delivery.  It decodes afterwards.

Both exchange messages with the harness over a pipe: they receive a number and send what was done
and when.  The clock is the system's monotonic one, which all processes share.
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

#: Timeout for the other end of a connection.
WAIT_MAX_S = 20.0
#: How long the subscriber waits for surplus deliveries.
QUIET_S = 0.2
RECEIVE_BYTES = 1 << 18

#: The number of a filter, and the number of a record that was delivered for it.
Delivery = tuple[int, int]


class Wire(ABC):
    """The protocol of a peer and its clients.  It is pickled for the client processes."""

    #: The last byte of every delivery, which occurs nowhere else in it.
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
    """The publisher: for each n received, sends the first n frames and reports the start time."""
    with _connected(port) as connection:
        wire.log_in(connection)
        line.send(None)
        while count := line.recv():
            data = b"".join(frames[:count])
            start_s = time.monotonic()
            connection.sendall(data)
            line.send(start_s)


def receive(line: Connection, wire: Wire, port: int) -> None:
    """The subscriber: for each n received, takes n deliveries and reports the last one's time."""
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
            raise PeerError(
                f"the broker answered {answer!r}, which does not end with {answer_end!r}"
            )
        answer += chunk
    return answer


def _connected(port: int) -> socket.socket:
    return socket.create_connection((LOOPBACK, port), WAIT_MAX_S)


def _received(connection: socket.socket, end: bytes, count: int) -> tuple[float, bytes]:
    """The time of the last of `count` deliveries; all bytes, including surplus deliveries."""
    chunks: list[bytes] = []
    end_s = 0.0
    while chunk := read(connection, WAIT_MAX_S if count > 0 else QUIET_S):
        chunks.append(chunk)
        if count > 0:
            end_s = time.monotonic()
            count -= chunk.count(end)
    return end_s, b"".join(chunks)


def read(connection: socket.socket, wait_s: float) -> bytes:
    """The next bytes; empty if none arrive within `wait_s`."""
    connection.settimeout(wait_s)
    try:
        return connection.recv(RECEIVE_BYTES)
    except TimeoutError:
        return b""
