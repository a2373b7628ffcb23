"""Godwit's two clients on raw sockets, as the peers' clients are: what is measured is the broker.

The publisher encodes before the clock runs and sends in one large write.  While the clock runs, the
subscriber only walks from frame to frame and acknowledges; it reads what it got afterwards.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection

from benchmarks.peers.clients import RECEIVE_BYTES, WAIT_MAX_S
from godwit.content.filters import Filter
from godwit.content.messages import (
    Advertisement,
    AdvertisementId,
    AdvertisementInEffect,
    Publication,
    Subscription,
    SubscriptionId,
    SubscriptionInEffect,
)
from godwit.content.values import Value
from godwit.wire.frames import (
    HEADER,
    Acknowledge,
    Frame,
    Hello,
    ToClient,
    decode_to_client,
    decode_welcome,
    encode,
)

#: An acknowledgement, which is not numbered, is the only frame that is so short.
SIGNAL_BYTES_MAX = 18


class RawClient:
    """A connection that reads frames in bulk."""

    def __init__(self, host: str, port: int, name: str) -> None:
        self._socket = socket.create_connection((host, port), WAIT_MAX_S)
        self._rest = b""
        self.received = 0
        self.send(Hello(role="client", name=name))
        decode_welcome(next(bodies(self.read()[0])))

    def send(self, *frames: Frame) -> None:
        self._socket.sendall(b"".join(map(encode, frames)))

    def send_bytes(self, frames: bytes) -> None:
        self._socket.sendall(frames)

    def read(self) -> tuple[bytes, int]:
        """The complete frames of the next read, and how many of them are numbered."""
        data = self._rest + self._socket.recv(RECEIVE_BYTES)
        header_bytes, unpack = HEADER.size, HEADER.unpack_from
        start, last, numbered = 0, len(data) - header_bytes, 0
        while start <= last:
            following = start + header_bytes + unpack(data, start)[0]
            if following > len(data):
                break
            numbered += following - start > SIGNAL_BYTES_MAX
            start = following
        self._rest = data[start:]
        return data[:start], numbered

    def await_notices(self, kind: type[ToClient], count: int) -> None:
        while count > 0:
            for body in bodies(self.read()[0]):
                if isinstance(decode_to_client(body), kind):
                    self.received += 1
                    count -= 1
            self.send(Acknowledge(received=self.received))


def publish(line: Connection, host: str, port: int, records: Sequence[dict[str, Value]]) -> None:
    """For each n received sends the first n records and says when it began."""
    client = RawClient(host, port, "publisher")
    id = AdvertisementId("publisher/a")
    announced = Filter.parse(" and ".join(f"{name} is present" for name in records[0]))
    client.send(Advertisement(id=id, filter=announced))
    client.await_notices(AdvertisementInEffect, 1)
    line.send(None)
    sequence = 0
    while count := line.recv():
        frames = []
        for record in records[:count]:
            frames.append(
                encode(
                    Publication(
                        publisher="publisher",
                        sequence=sequence,
                        advertisement=id,
                        content=record,
                    )
                )
            )
            sequence += 1
        data = b"".join(frames)
        start_s = time.monotonic()
        client.send_bytes(data)
        line.send(start_s)


def receive(line: Connection, host: str, port: int, filters: Sequence[Filter]) -> None:
    """For each n received takes n publications and says when the last one came, and which."""
    client = RawClient(host, port, "subscriber")
    client.send(
        *(
            Subscription(id=SubscriptionId(f"subscriber/{number}"), filter=filter)
            for number, filter in enumerate(filters)
        )
    )
    client.await_notices(SubscriptionInEffect, len(filters))
    line.send(None)
    while count := line.recv():
        chunks: list[bytes] = []
        while count > 0:
            frames, numbered = client.read()
            chunks.append(frames)
            count -= numbered
            client.received += numbered
            client.send(Acknowledge(received=client.received))
        end_s = time.monotonic()
        line.send((end_s, list(_numbers(b"".join(chunks)))))


def bodies(frames: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(frames):
        length, _ = HEADER.unpack_from(frames, start)
        start += HEADER.size
        yield frames[start : start + length]
        start += length


def _numbers(frames: bytes) -> Iterator[object]:
    """Which records were delivered."""
    for message in map(decode_to_client, bodies(frames)):
        if isinstance(message, Publication):
            yield message.content["number"]
