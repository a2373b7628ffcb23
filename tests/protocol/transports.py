"""A transport and a receiver that record what happens, for tests."""

from __future__ import annotations

import asyncio
from typing import Any

from godwit.errors import PeerError
from godwit.protocol.frames import HEADER


class FakeTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.unsent_bytes = 0
        """The result of `get_write_buffer_size`."""
        self.is_reading_now = True
        self.was_closed = False
        self.was_aborted = asyncio.Event()

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self.written += data

    def bodies(self) -> list[bytes]:
        """The bodies of the frames written since the last call."""
        found, start = [], 0
        while start < len(self.written):
            length, _ = HEADER.unpack_from(self.written, start)
            start += HEADER.size + length
            found.append(bytes(self.written[start - length : start]))
        self.written.clear()
        return found

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("10.0.0.1", 99) if name == "peername" else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes

    def pause_reading(self) -> None:
        self.is_reading_now = False

    def resume_reading(self) -> None:
        self.is_reading_now = True

    def is_closing(self) -> bool:
        return self.was_closed

    def close(self) -> None:
        self.was_closed = True

    def abort(self) -> None:
        self.was_closed = True
        self.was_aborted.set()


class Recorder:
    """Records its calls; raises PeerError for the body `POISON`."""

    POISON = b"poison"

    def __init__(self) -> None:
        self.frames: list[tuple[int, bytes]] = []
        self.reads: list[int] = []
        """The number of frames at the end of each read."""
        self.writable = 0
        self.heartbeats = 0
        self.lost: list[tuple[str, bool]] = []
        self.gone = asyncio.Event()
        self.beaten = asyncio.Event()

    def on_frame(self, hops: int, body: bytes) -> None:
        if body == self.POISON:
            raise PeerError("that was poison")
        self.frames.append((hops, body))

    def on_read(self) -> None:
        self.reads.append(len(self.frames))

    def on_writable(self) -> None:
        self.writable += 1

    def on_heartbeat(self) -> None:
        self.heartbeats += 1
        self.beaten.set()

    def on_lost(self, reason: str, *, broke_rules: bool) -> None:
        self.lost.append((reason, broke_rules))
        self.gone.set()
