"""Two connected transports in memory: what is written to one is read from the other, later.

Unless the way is closed: then it waits, and so does the end of the connection, as with TCP.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from godwit.protocol.connection import Connection

#: How often a way that is closed is looked at.
POLL_S = 0.01


def connect_in_memory(
    near: Connection,
    far: Connection,
    latency_s: Callable[[], float],
    *,
    forth: Callable[[], bool] = lambda: True,
    back: Callable[[], bool] = lambda: True,
) -> tuple[MemoryTransport, MemoryTransport]:
    """Connect two ends; `latency_s` returns how long the next bytes take.

    `forth` tells whether bytes pass from the near end to the far one just now, `back` the same of
    the other way.
    """
    ends = MemoryTransport(near, latency_s, forth), MemoryTransport(far, latency_s, back)
    ends[0].peer, ends[1].peer = ends[1], ends[0]
    for end in ends:
        end.protocol.connection_made(end)
    return ends


class MemoryTransport(asyncio.Transport):
    """One end of a connection in memory."""

    peer: MemoryTransport

    def __init__(
        self, protocol: Connection, latency_s: Callable[[], float], is_open: Callable[[], bool]
    ) -> None:
        super().__init__()
        self.protocol = protocol
        self._latency_s = latency_s
        self._is_open = is_open
        self._unread = bytearray()
        self._high = 65_536
        self._is_reading = True
        self.is_closed = False
        self._is_full = False
        self._is_scheduled = False
        self.is_lost = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = high or self._high

    def get_write_buffer_size(self) -> int:
        return len(self._unread)

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if self.is_closed:
            return
        self._unread += data
        if len(self._unread) > self._high and not self._is_full:
            self._is_full = True
            self.protocol.pause_writing()
        self.schedule()

    def is_reading(self) -> bool:
        return self._is_reading

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        self.peer.schedule()

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        """End the connection after the peer has read what was written."""
        self.is_closed = True
        self.schedule()

    def abort(self) -> None:
        self._unread.clear()
        self.close()

    def schedule(self) -> None:
        """Transfer after the latency, unless that is scheduled already."""
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_later(self._latency_s(), self._transfer)

    def drop(self) -> None:
        """End the connection at both ends; what is on the way is lost, closed or not."""
        for end in (self, self.peer):
            end.open_for_good()
        self.close()

    def open_for_good(self) -> None:
        self._unread.clear()
        self._is_open = lambda: True

    def _transfer(self) -> None:
        if not self._is_open():
            asyncio.get_running_loop().call_later(POLL_S, self._transfer)
            return
        self._is_scheduled = False
        peer = self.peer
        if self._unread and peer.is_reading() and not peer.is_closed:
            data = bytes(self._unread)
            self._unread.clear()
            peer.protocol.data_received(data)
            if self._is_full:
                self._is_full = False
                self.protocol.resume_writing()
        if self.is_closed and (not self._unread or peer.is_closed):
            peer.is_closed = True
            for end in (self, peer):
                if not end.is_lost:
                    end.is_lost = True
                    end.protocol.connection_lost(None)
