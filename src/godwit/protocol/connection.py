"""One connection: splits bytes into frames, batches writes, sends and checks heartbeats.

A connection does not interpret what it carries.  It hands every complete frame of a read to its
receiver and then calls `on_read`, so that all answers leave in one write.  A receiver that raises
PeerError ends the connection and nothing else.
"""

from __future__ import annotations

import asyncio
from array import array
from fcntl import ioctl
from termios import FIONREAD
from time import monotonic
from typing import Protocol, cast

from godwit.errors import PeerError
from godwit.protocol.frames import HEADER, HEARTBEAT_S, HELLO_BYTES_MAX, Frame, Goodbye, encode
from godwit.protocol.versions import PROTOCOL

#: After so many heartbeats without a byte the peer is considered dead.
SILENT_HEARTBEATS_MAX = 3
#: Bytes in the transport's buffer at which writing pauses.
WRITE_BUFFER_BYTES = 524_288
#: How long a closed connection may take to write its last bytes.
LINGER_S = 2.0


class Receiver(Protocol):
    """Handles the frames and events of a connection."""

    def on_frame(self, hops: int, body: bytes) -> None: ...

    def on_read(self) -> None:
        """All complete frames of one read have been handed over."""
        ...

    def on_writable(self) -> None:
        """The write buffer has room again."""
        ...

    def on_heartbeat(self) -> None:
        """Send something, so that the peer does not consider this side dead."""
        ...

    def on_lost(self, reason: str, *, broke_rules: bool) -> None:
        """The connection is lost, perhaps because the peer broke the protocol.  The last call."""
        ...


class Connection(asyncio.Protocol):
    def __init__(self, receiver: Receiver, *, heartbeat_s: float = HEARTBEAT_S) -> None:
        self.receiver = receiver
        self.is_writable = False
        self.frame_bytes_max = HELLO_BYTES_MAX
        """Increased by the receiver after the handshake."""
        self.peer_version = PROTOCOL
        """What the peer speaks; set in the handshake."""
        self.read_start_s = monotonic()
        """When the current read began."""
        self._heartbeat_s = heartbeat_s
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._needed_bytes = HEADER.size
        self._is_over = False
        self._is_reading = True
        self._silent_heartbeats = 0
        self._blocked_s = 0.0
        self._blocked_since_s = 0.0
        # By the loop's clock: the last heartbeat, and the last one before something came.
        self._beat_s = 0.0
        self._heard_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    # -- called by the receiver ----------------------------------------------------------------

    @property
    def peer_address(self) -> str:
        address = self._transport and self._transport.get_extra_info("peername")
        return f"{address[0]}:{address[1]}" if isinstance(address, tuple) else "memory"

    @property
    def silence_s(self) -> float:
        """How long the peer has been silent, at most: up to a heartbeat too long."""
        heard_s = self._heard_s if self._silent_heartbeats else self._beat_s
        return asyncio.get_running_loop().time() - heard_s

    @property
    def unread_bytes(self) -> int:
        """What has arrived and was not handed over: in the socket, and of an incomplete frame."""
        transport, count = self._transport, array("i", [0])
        socket = None if transport is None else transport.get_extra_info("socket")
        if socket is not None and socket.fileno() >= 0:
            ioctl(socket.fileno(), FIONREAD, count)
        return count[0] + len(self._buffer)

    @property
    def unsent_bytes(self) -> int:
        """What was written, and the system has not taken."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def take_blocked_s(self) -> float:
        """For how long the write buffer was full, since the last call."""
        if not self.is_writable:
            now_s = monotonic()
            self._blocked_s += now_s - self._blocked_since_s
            self._blocked_since_s = now_s
        blocked_s, self._blocked_s = self._blocked_s, 0.0
        return blocked_s

    def beat_every(self, heartbeat_s: float) -> None:
        """Send a heartbeat so often from now on, and expect the same of the peer."""
        self._heartbeat_s = heartbeat_s
        self._plan_beat()

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._is_over:
            self._transport.write(data)

    def pause_reading(self) -> None:
        if self._is_reading and self._transport is not None and not self._transport.is_closing():
            self._is_reading = False
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if not self._is_reading and self._transport is not None:
            self._is_reading = True
            self._silent_heartbeats = 0
            if not self._transport.is_closing():
                self._transport.resume_reading()

    def close(self, last: Frame | None = None) -> None:
        """Write what is left and `last`, and end the connection, without a call of `on_lost`."""
        if self._is_over:
            return
        if last is not None:
            self.write(encode(last))
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
        self._close_transport()

    def abort(self) -> None:
        """End the connection at once, whatever is left to write, without a call of `on_lost`."""
        self.close()
        if self._transport is not None:
            self._transport.abort()

    def lose(self) -> None:
        """Break the connection, for tests: `on_lost` is called at both ends."""
        if self._transport is not None:
            self._transport.abort()

    # -- called by the event loop --------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # No isinstance: the transports of uvloop are not subclasses of asyncio's.
        self._transport = transport = cast("asyncio.Transport", transport)
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        self.is_writable = True
        self._beat_s = self._heard_s = asyncio.get_running_loop().time()
        self._plan_beat()

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            return
        self.read_start_s = monotonic()
        self._silent_heartbeats = 0
        if self._buffer:
            if len(self._buffer) + len(data) < self._needed_bytes:
                self._buffer += data
                return  # The frame is not complete.
            data = b"".join((self._buffer, data))
            self._buffer.clear()
        try:
            used = self._read_frames(data)
            if used < len(data):
                self._buffer += data[used:]
            self.receiver.on_read()
        except PeerError as error:
            self._fail(str(error), broke_rules=True)

    def _read_frames(self, data: bytes) -> int:
        """Hand over every complete frame; return where the incomplete one starts."""
        header_bytes, unpack = HEADER.size, HEADER.unpack_from
        start, end = 0, len(data)
        while end - start >= header_bytes and not self._is_over:
            length, hops = unpack(data, start)
            if length > self.frame_bytes_max:
                raise PeerError(f"a frame of {length} bytes; at most {self.frame_bytes_max}")
            body = start + header_bytes
            following = body + length
            if following > end:
                self._needed_bytes = header_bytes + length
                return start
            self.receiver.on_frame(hops, data[body:following])
            start = following
        self._needed_bytes = header_bytes
        return start

    def pause_writing(self) -> None:
        self.is_writable = False
        self._blocked_since_s = monotonic()

    def resume_writing(self) -> None:
        self._blocked_s += monotonic() - self._blocked_since_s
        self.is_writable = True
        if not self._is_over:
            self.receiver.on_writable()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end("connection lost" if exc is None else f"connection lost: {exc}")
        self._transport = None

    def _beat(self) -> None:
        if not self._silent_heartbeats:
            self._heard_s = self._beat_s
        self._beat_s = asyncio.get_running_loop().time()
        # While reading is paused, silence says nothing about the peer.
        if self._is_reading:
            self._silent_heartbeats += 1
        if self._silent_heartbeats > SILENT_HEARTBEATS_MAX:
            silence_s = SILENT_HEARTBEATS_MAX * self._heartbeat_s
            self._fail(f"silent for {silence_s:g} s", broke_rules=False)
            return
        self._plan_beat()
        self.receiver.on_heartbeat()

    def _plan_beat(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._heartbeat_s, self._beat)

    def _fail(self, reason: str, *, broke_rules: bool) -> None:
        # A silent peer may only be asleep: without Goodbye it keeps its stream.
        if broke_rules:
            self.write(encode(Goodbye(reason=reason)))
        self._end(reason, broke_rules=broke_rules)
        self._close_transport()

    def _end(self, reason: str, *, broke_rules: bool = False) -> None:
        if self._is_over:
            return
        self._is_over = True
        self.is_writable = False
        if self._timer is not None:
            self._timer.cancel()
        self.receiver.on_lost(reason, broke_rules=broke_rules)

    def _close_transport(self) -> None:
        """Close when all is written, but wait LINGER_S at most for a peer that does not read."""
        transport = self._transport
        if transport is None:
            return
        transport.close()
        if transport.get_write_buffer_size():
            asyncio.get_running_loop().call_later(LINGER_S, transport.abort)
