"""Limits what a broker sends to its configured bandwidth: `limit_output` in the network file.

A bucket of bytes is filled at the rate of the bandwidth.  Ports that have something to write wait
in turn; each writes a small chunk while the bucket is not empty.  A port with control publications
goes before the others, as control publications go before others within a port.

Acknowledgements and heartbeats are not limited, and what must be written at once is written and
paid for afterwards: it makes the others wait longer.

Thesis 7.1: "a bandwidth limiter" makes the brokers of a test unequal.  It also serves brokers that
share a network with something more important.

O1  Within any time t, the ports write at most the rate times t, one burst, and one message more.
O2  A port that can write is served, however much others write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Protocol

from godwit.protocol.stream import CHUNK_BYTES, Stream

#: How much may be written at once after a pause, and in one turn of a port, in seconds.
BURST_S = 0.1
TURN_S = 0.02
#: A turn is not shorter than this, which is a few packets.
TURN_BYTES_MIN = 4_096
#: The shortest sleep.
WAIT_S_MIN = 0.001


class LimitedPort(Protocol):
    """What the limiter needs of a port."""

    stream: Stream

    def write_some(self, chunk_bytes: int) -> int:
        """Write about so many bytes; the result is how many, 0 if the peer takes nothing now."""
        ...

    def flush(self) -> None: ...


class OutputLimiter:
    def __init__(self, bytes_s: float, now_s: Callable[[], float] = monotonic) -> None:
        self._bytes_s = bytes_s
        self._now_s = now_s
        self._turn_bytes = min(max(TURN_BYTES_MIN, int(TURN_S * bytes_s)), CHUNK_BYTES)
        self._burst_bytes = max(BURST_S * bytes_s, float(self._turn_bytes))
        self._bucket_bytes = self._burst_bytes
        self._filled_s = now_s()
        # Ports that wait, in the order in which they write; those with control first.
        self._first: dict[LimitedPort, None] = {}
        self._others: dict[LimitedPort, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def flush(self, port: LimitedPort) -> None:
        """Let a port write what it has queued, now or when it is its turn."""
        if not port.stream.pending_bytes:
            return
        if port.stream.has_first:
            self._others.pop(port, None)
            self._first[port] = None
        elif port not in self._first:
            self._others[port] = None
        if self._timer is None:
            self._serve()

    def leave(self, port: LimitedPort) -> None:
        self._first.pop(port, None)
        self._others.pop(port, None)

    def holds(self, port: LimitedPort) -> bool:
        return port in self._first or port in self._others

    def charge(self, size_bytes: int) -> None:
        """Count what was written without waiting."""
        self._bucket_bytes -= size_bytes

    def _serve(self) -> None:
        self._timer = None
        self._fill()
        while self._bucket_bytes > 0 and (waiting := self._first or self._others):
            port = next(iter(waiting))
            del waiting[port]
            written_bytes = port.write_some(self._turn_bytes)
            self._bucket_bytes -= written_bytes
            if written_bytes:
                self._queue_again(port)
        if self._first or self._others:
            wait_s = max(WAIT_S_MIN, -self._bucket_bytes / self._bytes_s)
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._serve)

    def _queue_again(self, port: LimitedPort) -> None:
        stream = port.stream
        if stream.pending_bytes:
            (self._first if stream.has_first else self._others)[port] = None

    def _fill(self) -> None:
        now_s = self._now_s()
        filled_bytes = self._bucket_bytes + (now_s - self._filled_s) * self._bytes_s
        self._bucket_bytes = min(self._burst_bytes, filled_bytes)
        self._filled_s = now_s
