"""One peer as the broker sees it: a stream, a connection while there is one, and a queue.

    connected   what is put leaves with the next flush
    congested   connected, but it does not take or acknowledge what is written: whoever sends to
                it gets no acknowledgements until it does, and stops when its window is full
                (back-pressure)
    away        not connected: what is put waits for it to come back, for a while

Holding back the sources of a congested port cannot lock a tree up: a source is held back only by
the hops that its own messages went to, never by the hop they came from, so the waiting has no
cycle.  It is done by silence and not by reading no more, because acknowledgements come in between
messages: two links that are congested because of each other must hear each other's.

A subscriber may hold its publishers back for `patience_s` in a row.  After that it is isolated:
it holds nobody back, and what exceeds its queue is dropped, counted, and reported to it in the
place of what is missing.  When it has caught up it is like any other again.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, assert_never

from godwit.broker.meters import Meters
from godwit.broker.stimuli import Client, Neighbour
from godwit.content.messages import Message
from godwit.network.settings import Limits
from godwit.wire.connection import Connection
from godwit.wire.frames import (
    DECODE_ERRORS,
    FRAME_BYTES_MAX,
    STAMP_BYTES,
    Acknowledge,
    Dropped,
    FromBroker,
    FromClient,
    Goodbye,
    Signal,
    Stayed,
    decode_from_broker,
    decode_from_client,
    encode,
    malformed,
)
from godwit.wire.stream import Stream

#: Beyond our own window, what a peer may send ahead of our acknowledgements: a client's window,
#: and one more write, which may be a large frame.
HELD_BACK_BYTES_SPARE = 4 * FRAME_BYTES_MAX


class Owner(Protocol):
    """What a port needs of the node it belongs to."""

    limits: Limits
    meters: Meters
    output_bandwidth_bytes_s: float
    refused: int
    """Connections that broke the protocol."""

    def now_s(self) -> float: ...

    def receive(self, source: Port, message: Message, hops: int, body: bytes) -> None:
        """A message has come in, and these were its bytes."""
        ...

    def finish_read(self, source: Port) -> None:
        """All messages of one read have come in."""
        ...

    def remove(self, port: Port, reason: str) -> None:
        """The peer is not coming back."""
        ...

    def on_away(self, port: Port, reason: str) -> None:
        """The peer lost its connection, and may come back."""
        ...


@dataclass(slots=True, eq=False)
class Traffic:
    """What passed through one port, since it was opened."""

    dropped: int = 0
    isolations: int = 0


class Port(ABC):
    """Receives what its connection reads; see wire/connection.py."""

    hop: Client | Neighbour
    is_link: bool

    def __init__(self, owner: Owner, stream_id: str) -> None:
        self.stream = Stream(stream_id)
        self.connection: Connection | None = None
        self.was_attached = False
        self.detached = asyncio.Event()
        """Set while there is no connection."""
        self.traffic = Traffic()
        self.why_stayed: str | None = None
        """What a client that was asked to move says, if it could not."""
        self._owner = owner
        self._limits = owner.limits
        self._acknowledged = 0
        self._held_back_bytes = 0
        self._backlog_bytes = 0
        self.blockers: set[Port] = set()
        self.sources: set[Port] = set()
        self._return_timer: asyncio.TimerHandle | None = None

    @property
    def is_connected(self) -> bool:
        return self.connection is not None

    @property
    def is_congested(self) -> bool:
        return self.connection is not None and not self._can_write(self.connection)

    def _can_write(self, connection: Connection) -> bool:
        return (
            connection.is_writable and self.stream.unacknowledged_bytes < self._limits.window_bytes
        )

    # -- connections come and go ---------------------------------------------------------------

    def attach(self, connection: Connection, *, received: int) -> None:
        """Go on over this connection; the peer has received so many frames."""
        lacking = self.stream.take_again(received)
        if self.connection is not None:
            self.connection.abort()
        if self._return_timer is not None:
            self._return_timer.cancel()
        self.connection = connection
        self.was_attached = True
        self.detached.clear()
        connection.receiver = self
        connection.frame_bytes_max = FRAME_BYTES_MAX + STAMP_BYTES
        self._acknowledged = self.stream.received
        self._held_back_bytes = 0
        if lacking:
            connection.write(lacking)
        self._relieve()

    def part(self, reason: str) -> None:
        """Say goodbye, and listen until the peer has hung up."""
        if self.connection is not None:
            self.connection.write(encode(Goodbye(reason=reason)))

    def close(self, reason: str) -> None:
        """Say goodbye if there is someone to say it to, and let go of everybody."""
        if self._return_timer is not None:
            self._return_timer.cancel()
        if self.connection is not None:
            self.connection.close(Goodbye(reason=reason))
            self.connection = None
        self.detached.set()
        self._owner.meters.on_dequeued(self._backlog_bytes)
        self._backlog_bytes = 0
        self._release_sources()
        for blocker in self.blockers:
            blocker.sources.discard(self)
        self.blockers.clear()

    def on_lost(self, reason: str, *, broke_rules: bool) -> None:
        self.connection = None
        self.detached.set()
        self._release_sources()
        if broke_rules:
            self._owner.finish_read(self)  # What it said before that counts.
            self._owner.refused += 1
            self._owner.remove(self, reason)
            return
        loop = asyncio.get_running_loop()
        self._return_timer = loop.call_later(self._return_s, self._on_not_returned)
        self._owner.on_away(self, reason)

    @property
    @abstractmethod
    def _return_s(self) -> float:
        """How long to wait for the peer to come back."""

    def _on_not_returned(self) -> None:
        self._owner.remove(self, f"did not come back within {self._return_s:g} s")

    def _give_up(self, reason: str) -> None:
        """Remove this port, but not in the middle of what the node is doing."""
        asyncio.get_running_loop().call_soon(self._owner.remove, self, reason)

    # -- what goes out -------------------------------------------------------------------------

    @abstractmethod
    def put_publication(self, frame: bytes, *, is_control: bool) -> None:
        """Queue a publication, if there is room."""

    def put(self, frame: bytes) -> None:
        """Queue anything else."""
        self.stream.put(frame)

    def flush(self) -> None:
        """Write what is queued, as far as the peer takes it."""
        connection, stream = self.connection, self.stream
        taken, written_bytes = stream.taken, 0
        while connection is not None and stream.pending_bytes and self._can_write(connection):
            frames = stream.take()
            connection.write(frames)
            written_bytes += len(frames)
        self._meter(stream.taken - taken, written_bytes)

    def _meter(self, frames: int, written_bytes: int) -> None:
        owner = self._owner
        if frames:
            busy_s = written_bytes / owner.output_bandwidth_bytes_s
            owner.meters.on_sent(frames, written_bytes, busy_s, owner.now_s())
        backlog_bytes = self.stream.pending_bytes
        if backlog_bytes != self._backlog_bytes:
            owner.meters.on_queued(backlog_bytes - self._backlog_bytes)
            self._backlog_bytes = backlog_bytes

    def acknowledge(self) -> None:
        """Confirm what has come in since the last time, unless this peer is held back."""
        received = self.stream.received
        if self.connection is not None and received != self._acknowledged and not self.blockers:
            self._acknowledged = received
            self.connection.write(encode(Acknowledge(received=received)))

    # -- back-pressure -------------------------------------------------------------------------

    def wait_for(self, congested: Port) -> None:
        """Confirm nothing to this peer until `congested` takes what is written to it."""
        if self.connection is None:
            return
        self.blockers.add(congested)
        congested.sources.add(self)
        congested.on_waited_for()

    def hold_back(self, read_bytes: int) -> None:
        """So much was read from a peer that is held back; one that does not stop is made to."""
        self._held_back_bytes += read_bytes
        limit_bytes = self._limits.window_bytes + HELD_BACK_BYTES_SPARE
        if self._held_back_bytes > limit_bytes and self.connection is not None:
            self.connection.pause_reading()

    def on_waited_for(self) -> None:  # noqa: B027  Most peers do not mind.
        """Somebody is held back because of this peer."""

    def _release_sources(self) -> None:
        for source in self.sources:
            source.blockers.discard(self)
            if not source.blockers:
                source.go_on()
        self.sources.clear()

    def go_on(self) -> None:
        """Nobody holds this peer back any more."""
        self._held_back_bytes = 0
        if self.connection is not None:
            self.connection.resume_reading()
        self.acknowledge()

    def _relieve(self) -> None:
        """Something was taken or acknowledged: write on, and let the sources go on."""
        self.flush()
        if self.sources and not self.is_congested:
            self._release_sources()

    # -- what comes in -------------------------------------------------------------------------

    def on_frame(self, hops: int, body: bytes) -> None:
        try:
            message = self._decode(body)
        except DECODE_ERRORS as error:
            raise malformed(error) from None
        if type(message) is Acknowledge or type(message) is Goodbye:
            self._on_signal(message)
            return
        self.stream.received += 1
        if type(message) is Stayed:
            self.why_stayed = message.reason
        else:
            self._owner.receive(self, message, hops, body)

    #: What this kind of peer may send.
    _decode: Callable[[bytes], FromClient | FromBroker]

    def _on_signal(self, signal: Signal) -> None:
        match signal:
            case Acknowledge(received=received):
                self.stream.acknowledge(received)
                self._relieve()
            case Goodbye(reason=reason):
                if self.connection is not None:  # It does not wait for ours.
                    self.connection.close()
                    self.connection = None
                self._owner.remove(self, f"said goodbye: {reason[:200]}")
            case _:
                assert_never(signal)

    def on_read(self) -> None:
        self._owner.finish_read(self)

    def on_writable(self) -> None:
        self._relieve()

    def on_heartbeat(self) -> None:
        if self.connection is not None:
            if not self.blockers:
                self._acknowledged = self.stream.received
            self.connection.write(encode(Acknowledge(received=self._acknowledged)))


class ClientPort(Port):
    is_link = False

    def __init__(self, owner: Owner, stream_id: str, name: str) -> None:
        super().__init__(owner, stream_id)
        self.hop: Client = Client(name)
        self._missing = 0
        self._is_isolated = False
        self._patience_timer: asyncio.TimerHandle | None = None

    @property
    def is_congested(self) -> bool:
        return not self._is_isolated and super().is_congested

    @property
    def _return_s(self) -> float:
        return self._limits.session_s

    def put_publication(self, frame: bytes, *, is_control: bool) -> None:
        # As long as somebody waits for this client, their windows bound its queue.
        if self._is_isolated or self.connection is None:
            waiting_bytes = self.stream.pending_bytes + len(frame)
            if waiting_bytes > self._limits.client_queue_bytes:
                self._missing += 1
                self.traffic.dropped += 1
                return
        if self._missing:
            self._report_missing()
        if is_control:
            self.stream.put_first(frame)
        else:
            self.stream.put(frame)

    def put(self, frame: bytes) -> None:
        super().put(frame)
        # Answers are never dropped: they answer requests, and who asks should listen.
        waiting_bytes = self.stream.pending_bytes
        is_left_behind = self._is_isolated or self.connection is None
        if waiting_bytes > 2 * self._limits.client_queue_bytes and is_left_behind:
            self._give_up("asks, and does not read the answers")

    def flush(self) -> None:
        super().flush()
        if not self.stream.pending_bytes:
            if self._missing:
                self._report_missing()
                super().flush()
            self._is_isolated = self._is_isolated and super().is_congested

    def _report_missing(self) -> None:
        self.stream.put(encode(Dropped(count=self._missing)))
        self._missing = 0

    def on_waited_for(self) -> None:
        if self._patience_timer is None:
            loop = asyncio.get_running_loop()
            self._patience_timer = loop.call_later(self._limits.patience_s, self._isolate)

    def _release_sources(self) -> None:
        super()._release_sources()
        if self._patience_timer is not None:
            self._patience_timer.cancel()
            self._patience_timer = None

    def _isolate(self) -> None:
        if self.is_congested:
            self._is_isolated = True
            self.traffic.isolations += 1
        self._release_sources()

    _decode = staticmethod(decode_from_client)


class LinkPort(Port):
    is_link = True

    def __init__(self, owner: Owner, stream_id: str, name: str) -> None:
        super().__init__(owner, stream_id)
        self.hop: Neighbour = Neighbour(name)

    @property
    def _return_s(self) -> float:
        return self._limits.link_s

    def put_publication(self, frame: bytes, *, is_control: bool) -> None:
        if is_control:
            self.stream.put_first(frame)
        else:
            self.stream.put(frame)

    def flush(self) -> None:
        super().flush()
        if not self.is_connected and self.stream.pending_bytes > self._limits.link_queue_bytes:
            self._give_up("was away, and too much was waiting for it")

    _decode = staticmethod(decode_from_broker)
