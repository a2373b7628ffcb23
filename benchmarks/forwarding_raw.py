"""Godwit's two clients on raw sockets, as for the peers, so that the broker is the bottleneck.

The publisher encodes before the clock runs and sends in one large write.  While the clock runs, the
subscriber only counts how often a publication begins, and acknowledges; it decodes afterwards.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection

from benchmarks.peers.clients import QUIET_S, WAIT_MAX_S, read
from benchmarks.peers.processes import PeerError
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
from godwit.protocol.frames import (
    HEADER,
    Acknowledge,
    Frame,
    Hello,
    ToClient,
    decode_to_client,
    decode_welcome,
    encode,
    encode_body,
)

PUBLISHER = "publisher"
ADVERTISEMENT = AdvertisementId(f"{PUBLISHER}/a")
#: How the body of each publication begins; this occurs nowhere else.
BEGINNING = encode_body(
    Publication(publisher=PUBLISHER, sequence=0, advertisement=ADVERTISEMENT, content={})
)[: len(PUBLISHER) + 3]


class RawClient:
    """A connection that reads frames in bulk."""

    def __init__(self, host: str, port: int, name: str) -> None:
        self._socket = socket.create_connection((host, port), WAIT_MAX_S)
        self._rest = b""
        self.received = 0
        self.send(Hello(role="client", name=name))
        while not (welcome := self.bodies()):
            pass
        decode_welcome(welcome[0])

    def send(self, *frames: Frame) -> None:
        self.send_bytes(b"".join(map(encode, frames)))

    def send_bytes(self, frames: bytes) -> None:
        self._socket.settimeout(WAIT_MAX_S)
        self._socket.sendall(frames)

    def bodies(self) -> list[bytes]:
        """The complete frames of the next read."""
        frames = self._rest + self._read()
        found, end = _bodies(frames)
        self._rest = frames[end:]
        return found

    def take(self, count: int) -> tuple[float, bytes]:
        """When the last of so many publications had arrived, and all frames so far.

        Acknowledges what it takes; takes surplus publications, too.
        """
        chunks, before = [self._rest], b""
        while count > 0:
            chunk = self._read()
            end_s = time.monotonic()
            chunks.append(chunk)
            seen = before + chunk
            begun = seen.count(BEGINNING)
            before = seen[1 - len(BEGINNING) :]
            count -= begun
            self.received += begun
            self.send(Acknowledge(received=self.received))
        frames = b"".join(chunks)
        while len(frames) < _end_of_last(frames):
            frames += self._read()
            end_s = time.monotonic()
        while surplus := read(self._socket, QUIET_S):
            frames += surplus
        _, end = _bodies(frames)
        self._rest = frames[end:]
        return end_s, frames[:end]

    def _read(self) -> bytes:
        data = read(self._socket, WAIT_MAX_S)
        if not data:
            raise PeerError(f"the broker has sent nothing for {WAIT_MAX_S:g} s")
        return data

    def await_notices(self, kind: type[ToClient], count: int) -> None:
        while count > 0:
            for body in self.bodies():
                if isinstance(decode_to_client(body), kind):
                    self.received += 1
                    count -= 1
            self.send(Acknowledge(received=self.received))


def publish(line: Connection, host: str, port: int, records: Sequence[dict[str, Value]]) -> None:
    """For each n received, sends the first n records and reports the start time."""
    client = RawClient(host, port, PUBLISHER)
    announced = Filter.parse(" and ".join(f"{name} is present" for name in records[0]))
    client.send(Advertisement(id=ADVERTISEMENT, filter=announced))
    client.await_notices(AdvertisementInEffect, 1)
    line.send(None)
    sequence = 0
    while count := line.recv():
        frames = []
        for record in records[:count]:
            frames.append(
                encode(
                    Publication(
                        publisher=PUBLISHER,
                        sequence=sequence,
                        advertisement=ADVERTISEMENT,
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
    """For each n received, takes n publications and reports the last one's time, and which."""
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
        end_s, frames = client.take(count)
        line.send((end_s, list(_numbers(frames))))


def _end_of_last(frames: bytes) -> int:
    """Where the last publication ends, even if it is not complete yet."""
    body = frames.rindex(BEGINNING)
    length, _ = HEADER.unpack_from(frames, body - HEADER.size)
    return int(body + length)


def _bodies(frames: bytes) -> tuple[list[bytes], int]:
    """The bodies of the complete frames, and where the last of them ends."""
    found: list[bytes] = []
    end = 0
    while len(frames) - end >= HEADER.size:
        length, _ = HEADER.unpack_from(frames, end)
        body = end + HEADER.size
        if body + length > len(frames):
            break
        found.append(frames[body : body + length])
        end = body + length
    return found, end


def _numbers(frames: bytes) -> Iterator[object]:
    """Numbers of the records that were delivered."""
    for message in map(decode_to_client, _bodies(frames)[0]):
        if isinstance(message, Publication):
            yield message.content["number"]
