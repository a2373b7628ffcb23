"""One peer of a broker: a stream, a connection while there is one, and a queue.

    connected   what is put leaves with the next flush, as far as the peer takes it
    away        not connected: what is put waits until the peer comes back, or is given up

A peer that gets no acknowledgements stops when its window is full (back-pressure): the outbox
acknowledges (outbox.py).  A port does not stop reading for that, because acknowledgements come
between messages: two links that are slow because of each other must read each other's.

A subscriber that acknowledges nothing may hold its publishers back for `patience_s`, unless it is
durable.  Then it is isolated: the broker acknowledges in its place, and publications that exceed
its queue are dropped, counted, and reported to it in the place of what is missing.  Once it has
caught up it is treated like any other again.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass
from math import inf
from typing import Protocol

from msgspec.structs import replace

from godwit.broker.stimuli import LinkKind, LocalClient, NameLeft, Neighbour
from godwit.content.messages import Publication, Sweep
from godwit.protocol.connection import Connection
from godwit.protocol.frames import (
    FRAME_BYTES_MAX,
    HEADER,
    Acknowledge,
    Dropped,
    Goodbye,
    decode_from_broker,
    encode,
)
from godwit.protocol.stream import Stream
from godwit.runtime.output_limiter import OutputLimiter
from godwit.runtime.settings import Limits

#: What a peer may send ahead of our acknowledgements, beyond our own window: a client's window,
#: and one more write, which may be a large frame.
UNACKNOWLEDGED_BYTES_SPARE = 4 * FRAME_BYTES_MAX
#: How long a soft link may be without a connection: there is another way.
SOFT_LINK_S = 2.0
#: What went wrong may be told at length by a peer.
TROUBLE_MAX = 200


class PortOwner(Protocol):
    """What a port needs of its node."""

    limits: Limits
    limiter: OutputLimiter | None

    def now_s(self) -> float: ...

    def remove(self, port: Port, reason: str) -> None:
        """The peer is given up."""
        ...

    def excuse(self, port: Port) -> None:
        """The peer is isolated: acknowledge in its place."""
        ...


@dataclass(slots=True, eq=False)
class Traffic:
    """Counters of one port, since it was opened, and of the current window of the meters."""

    dropped: int = 0
    isolations: int = 0
    has_published: bool = False
    """Publications came from the peer."""

    messages_out: int = 0
    bytes_out: int = 0
    """Written in this window."""

    unsent_bytes: int = 0
    """Not taken by the system when this window began."""

    last_bytes_out: int = 0
    """Taken by the system in the last complete window."""

    def take(self, unsent_bytes: int) -> tuple[int, int]:
        """Begin a new window; the messages and bytes of the last one that the system has taken."""
        taken = self.messages_out, self.bytes_out + self.unsent_bytes - unsent_bytes
        self.messages_out, self.bytes_out, self.unsent_bytes = 0, 0, unsent_bytes
        self.last_bytes_out = taken[1]
        return taken


class Port(ABC):
    hop: LocalClient | Neighbour
    is_link: bool
    is_pending = False
    """Of a link: not in use yet; its ends find out whether it closes a cycle."""

    def __init__(self, owner: PortOwner, stream_id: str) -> None:
        self.stream = Stream(stream_id)
        self.connection: Connection | None = None
        self.was_attached = False
        self.detached = asyncio.Event()
        """Set while there is no connection."""
        self.heard_s = owner.now_s()
        """When the peer was last heard, once there is no connection."""
        self.traffic = Traffic()
        self.acknowledged = 0
        """Frames of the peer that were acknowledged to it."""
        self.is_isolated = False
        """Publishers do not wait for it, and it misses what exceeds its queue."""
        self.stayed_reason: str | None = None
        """Why a client that was asked to move did not."""
        self._owner = owner
        self._limits = owner.limits
        self._limiter = owner.limiter
        self._return_timer: asyncio.TimerHandle | None = None

    @property
    def is_connected(self) -> bool:
        return self.connection is not None

    # -- the connection ------------------------------------------------------------------------

    def attach(self, connection: Connection, *, received: int) -> None:
        """Continue over this connection; the peer has received so many frames."""
        lacking = self.stream.take_again(received)
        if self.connection is not None:
            self.connection.abort()
        if self._return_timer is not None:
            self._return_timer.cancel()
        self.connection = connection
        self.was_attached = True
        self.detached.clear()
        if lacking:
            connection.write(lacking)
            self._count(0, len(lacking))
        self._write_ahead()
        if self.acknowledged:  # The peer may not have received it.
            self.beat()
        self.flush()

    def detach(self) -> None:
        """The connection is gone."""
        if self.connection is not None:
            self.heard_s = self._owner.now_s() - self.connection.silence_s
        self.connection = None
        self.detached.set()

    def hang_up(self) -> None:
        """Close the connection without a goodbye."""
        if self.connection is not None:
            self.heard_s = self._owner.now_s()
            self.connection.close()
            self.connection = None

    def part(self, reason: str, *, for_good: bool = False) -> None:
        """Say goodbye, and read until the peer has hung up."""
        if self.connection is not None:
            self.connection.write(encode(Goodbye(reason=reason, for_good=for_good)))

    def close(self, reason: str) -> None:
        """Say goodbye to a peer that is connected; the port is not used again."""
        if self._return_timer is not None:
            self._return_timer.cancel()
        if self.connection is not None:
            self.connection.close(Goodbye(reason=reason))
        self.detach()
        if self._limiter is not None:
            self._limiter.leave(self)

    def await_return(self) -> None:
        """Give the peer up unless it comes back in time."""
        loop = asyncio.get_running_loop()
        self._return_timer = loop.call_later(self._return_s, self._on_not_returned)

    @property
    @abstractmethod
    def _return_s(self) -> float:
        """How long to wait for the peer to come back."""

    def _on_not_returned(self) -> None:
        self._owner.remove(self, f"did not come back within {self._return_s:g} s")

    def _give_up(self, reason: str) -> None:
        """Remove this port, after what the node is doing now."""
        asyncio.get_running_loop().call_soon(self._owner.remove, self, reason)

    # -- the queue -----------------------------------------------------------------------------

    def put_publications(self, frames: list[bytes]) -> None:
        """Queue publications, none of them control, if there is room."""
        self.stream.put_all(frames)

    def put_publication(self, frame: bytes, *, is_control: bool) -> None:
        """Queue a publication, if there is room."""
        if is_control:
            self.stream.put_first(frame)
        else:
            self.stream.put(frame)

    def put(self, frame: bytes) -> None:
        """Queue anything else.  It is not sent again if the peer fails."""
        self.stream.put_uncounted(frame)

    def put_ahead(self, frame: bytes) -> None:
        """Send this before all that is queued, and before any later acknowledgement.

        An acknowledgement is written at once, whatever is queued, and so is this.
        """
        self.stream.put_first(frame)
        self._write_ahead()

    def _write_ahead(self) -> None:
        stream, taken, written_bytes = self.stream, self.stream.taken, 0
        while self.connection is not None and stream.has_first:
            frames = stream.take()
            self.connection.write(frames)
            written_bytes += len(frames)
        self._count(stream.taken - taken, written_bytes)

    def flush(self) -> None:
        """Write what is queued, as far as the peer takes it, and the broker may."""
        connection, stream = self.connection, self.stream
        if self._limiter is not None:
            self._limiter.flush(self)
            return
        taken, written_bytes = stream.taken, 0
        while connection is not None and stream.pending_bytes and self._can_write(connection):
            frames = stream.take()
            connection.write(frames)
            written_bytes += len(frames)
        if written_bytes:
            traffic = self.traffic
            traffic.messages_out += stream.taken - taken
            traffic.bytes_out += written_bytes

    def write_some(self, chunk_bytes: int) -> int:
        """Write about so much of what is queued, for the limiter; the bytes that were written."""
        connection, stream = self.connection, self.stream
        if connection is None or not stream.pending_bytes or not self._can_write(connection):
            return 0
        taken = stream.taken
        frames = stream.take(chunk_bytes)
        connection.write(frames)
        self.traffic.messages_out += stream.taken - taken
        self.traffic.bytes_out += len(frames)
        return len(frames)

    def _can_write(self, connection: Connection) -> bool:
        return (
            connection.is_writable and self.stream.unacknowledged_bytes < self._limits.window_bytes
        )

    def _count(self, frames: int, written_bytes: int) -> None:
        """Count what was written whatever the limit is."""
        self.traffic.messages_out += frames
        self.traffic.bytes_out += written_bytes
        if self._limiter is not None:
            self._limiter.charge(written_bytes)

    @property
    def backlog_bytes(self) -> int:
        """What waits because the output is too slow; not what waits for the peer."""
        connection, stream = self.connection, self.stream
        if connection is None or self.is_isolated:
            return 0
        if stream.unacknowledged_bytes >= self._limits.window_bytes:
            return 0
        return stream.pending_bytes + connection.unsent_bytes

    # -- acknowledgements ----------------------------------------------------------------------

    def acknowledge(self, received: int, pending_bytes: int) -> None:
        """Acknowledge so many frames of the peer; so many bytes of later ones are pending."""
        has_news = received > self.acknowledged
        if has_news:
            self.acknowledged = received
        if self.connection is None:
            return
        if pending_bytes > self._limits.window_bytes + UNACKNOWLEDGED_BYTES_SPARE:
            self.connection.pause_reading()  # The peer ignores that its window is full.
        else:
            self.connection.resume_reading()
        if has_news:
            self.beat()

    def beat(self) -> None:
        """Repeat the last acknowledgement, which is the heartbeat, too."""
        if self.connection is not None:
            self.connection.write(encode(Acknowledge(received=self.acknowledged)))

    def on_awaited(self) -> None:  # noqa: B027  Only clients are isolated.
        """An acknowledgement to another peer waits for this one."""

    def on_progress(self) -> None:  # noqa: B027
        """The peer has acknowledged something."""

    def end_isolation(self) -> bool:
        """End the isolation of a peer that has caught up; True if it has."""
        return False


class ClientPort(Port):
    is_link = False

    def __init__(self, owner: PortOwner, stream_id: str, name: str) -> None:
        super().__init__(owner, stream_id)
        self.hop: LocalClient = LocalClient(name)
        self.is_durable = False
        """Publishers wait for it as long as it takes; nothing is dropped."""
        self.claim: NameLeft | None = None
        """What withdraws its claim to its name, if it has one."""
        self._missing = 0
        self._awaited_since_s: float | None = None
        """When a publisher began to wait for it; None if none does since its last progress."""
        self._patience_timer: asyncio.TimerHandle | None = None

    @property
    def incarnation(self) -> str:
        """Of the client, if it has claimed its name."""
        return "" if self.claim is None else self.claim.incarnation

    @property
    def _return_s(self) -> float:
        return self._limits.durable_s if self.is_durable else self._limits.session_s

    def close(self, reason: str) -> None:
        if self._patience_timer is not None:
            self._patience_timer.cancel()
        super().close(reason)

    def put_publications(self, frames: list[bytes]) -> None:
        if self.connection is not None and not self.is_isolated and not self._missing:
            self.stream.put_all(frames)
            return
        for frame in frames:
            self.put_publication(frame, is_control=False)

    def put_publication(self, frame: bytes, *, is_control: bool) -> None:
        # While publishers wait for this client, their windows bound its queue.
        if (self.is_isolated or self.connection is None) and not self.is_durable:
            waiting_bytes = self.stream.pending_bytes + len(frame)
            if waiting_bytes > self._limits.client_queue_bytes:
                self._missing += 1
                self.traffic.dropped += 1
                return
        if self._missing:
            self._report_missing()
        super().put_publication(frame, is_control=is_control)

    def put(self, frame: bytes) -> None:
        super().put(frame)
        # Answers to requests are never dropped.
        if self.stream.pending_bytes > 2 * self._limits.client_queue_bytes:
            self._give_up("sends requests and does not read the answers")

    def flush(self) -> None:
        super().flush()
        if self._missing and not self.stream.pending_bytes:
            self._report_missing()
            super().flush()

    def _report_missing(self) -> None:
        self.stream.put(encode(Dropped(count=self._missing)))
        self._missing = 0

    def write_some(self, chunk_bytes: int) -> int:
        has_answered = not self.stream.unacknowledged_bytes
        written_bytes = super().write_some(chunk_bytes)
        if written_bytes and has_answered and self._awaited_since_s is not None:
            self._awaited_since_s = asyncio.get_running_loop().time()  # So far it waited for us.
        return written_bytes

    def on_awaited(self) -> None:
        if self._awaited_since_s is None and not self.is_durable:
            loop = asyncio.get_running_loop()
            self._awaited_since_s = loop.time()
            # One timer for all waits: to start and cancel one for each would cost more.
            if self._patience_timer is None:
                patience_s = self._limits.patience_s
                self._patience_timer = loop.call_later(patience_s, self._end_patience)

    def on_progress(self) -> None:
        self._awaited_since_s = None

    def _end_patience(self) -> None:
        self._patience_timer = None
        if self._awaited_since_s is None:
            return
        loop = asyncio.get_running_loop()
        if self._waits_for_limiter:
            self._awaited_since_s = loop.time()
        left_s = self._awaited_since_s + self._limits.patience_s - loop.time()
        if left_s > 0:
            self._patience_timer = loop.call_later(left_s, self._end_patience)
        else:
            self._awaited_since_s = None
            self.is_isolated = True
            self.traffic.isolations += self.is_connected
            self._owner.excuse(self)

    @property
    def _waits_for_limiter(self) -> bool:
        """Has it acknowledged all that it got, and the rest waits for this broker's bandwidth?"""
        if self._limiter is None or self.stream.unacknowledged_bytes:
            return False
        return self._limiter.holds(self)

    def end_isolation(self) -> bool:
        connection = self.connection
        if not self.is_isolated or connection is None or self.stream.pending_bytes:
            return False
        self.is_isolated = not self._can_write(connection)
        return not self.is_isolated


class LinkPort(Port):
    is_link = True

    def __init__(self, owner: PortOwner, stream_id: str, hop: Neighbour) -> None:
        super().__init__(owner, stream_id)
        self.hop: Neighbour = hop
        self.kind = LinkKind.PRIMARY
        self.dialled_at = ""
        """The name or address that this broker has dialled, if it has."""
        self.decided = asyncio.Event()  # Set when the link is up, or refused.
        self.refusal: str | None = None  # Why the link is refused, if it is.
        self.awaits_news = False
        """Its epoch is not known here: the neighbour will tell (node_epochs.py)."""
        self.trouble = ""  # Why the last call of this broker has failed, if it calls.
        self.has_restarted = False  # The neighbour has failed since the link was opened.
        self.kept: list[bytes] | None = None
        """Frames to send again to a neighbour that has lost the stream."""
        self.told = 0  # Up to where the router was told of acknowledgements.

    @property
    def _return_s(self) -> float:
        return SOFT_LINK_S if self.kind is LinkKind.SOFT else self._limits.link_s

    def _on_not_returned(self) -> None:
        reason = f"did not come back within {self._return_s:g} s"
        self._owner.remove(self, because(reason, self.trouble))

    def restart(self, stream_id: str) -> None:
        """The neighbour has lost the stream: keep what it may not have passed on.

        Routing tables are sent again by the resync.  Control publications and letters are dropped:
        they are out of date.
        """
        old, self.stream = self.stream, Stream(stream_id)
        self.kept = [kept for frame in old.frames() if (kept := _kept(frame))]
        self.stream.begin_at(old.position - len(self.kept))
        self.has_restarted = True
        self.acknowledged = 0

    @property
    def is_remembered(self) -> bool:
        """Has the neighbour ever sent anything on this link?"""
        return self.has_restarted or self.stream.received > 0

    def dropped(self) -> Counter[str]:
        """Publications that the neighbour has not acknowledged, by publisher; none are control."""
        return Counter(publication.publisher for publication, _ in self.undelivered())

    def undelivered(self) -> list[tuple[Publication, int]]:
        """Publications that the neighbour has not acknowledged, and the links they have crossed."""
        found = []
        for frame in (*(self.kept or ()), *self.stream.frames()):
            message = decode_from_broker(frame[HEADER.size :])
            if isinstance(message, Publication) and not message.is_control:
                found.append((message, HEADER.unpack_from(frame)[1]))
        return found

    def put_kept(self) -> None:
        """Queue the kept frames, behind the tables."""
        for frame in self.kept or ():
            self.stream.put(frame)
        self.kept = None

    def flush(self) -> None:
        super().flush()
        if self.connection is None and self.stream.pending_bytes > self._limits.link_queue_bytes:
            self._give_up("was away, and its queue is full")


def because(reason: str, trouble: str) -> str:
    """Why a link is given up, and what went wrong last, if that is known."""
    return f"{reason}: {trouble[:TROUBLE_MAX]}" if trouble else reason


def _kept(frame: bytes) -> bytes:
    """What is sent again to a neighbour that has failed; it discards sweeps (node_recovery.py)."""
    message = decode_from_broker(frame[HEADER.size :])
    if isinstance(message, Sweep):
        return encode(replace(message, age_s=inf), HEADER.unpack_from(frame)[1])
    return frame if isinstance(message, Publication) and not message.is_control else b""
