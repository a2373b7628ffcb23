"""One peer as the broker sees it: a stream, a connection while there is one, and a queue.

    connected   what is put leaves with the next flush, as far as the peer takes it
    away        not connected: what is put waits for it to come back, for a while

What came from a peer is acknowledged when those have acknowledged it to whom it was passed on
(answering.py).  Until then the peer can send it again, and when its window is full it stops
(back-pressure).  That is done by silence and not by reading no more, because acknowledgements
come in between messages: two links that are slow because of each other must hear each other's.

A subscriber that acknowledges nothing may hold its publishers back for `patience_s`, unless it is
durable.  After that it is isolated: the broker answers for it, and what exceeds its queue is
dropped, counted, and reported to it in the place of what is missing.  When it has caught up it is
like any other again.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, assert_never

from godwit.broker.meters import Meters
from godwit.broker.stimuli import Client, Neighbour
from godwit.content.channels import (
    ChannelRequest,
    ChannelSubscription,
    ChannelUnsubscription,
)
from godwit.content.messages import OtherMessage, Publication, Sweep
from godwit.network.answering import Unanswered
from godwit.network.pinging import Pinging
from godwit.network.settings import Limits
from godwit.wire.connection import Connection
from godwit.wire.frames import (
    DECODE_ERRORS,
    FRAME_BYTES_MAX,
    HEADER,
    STAMP_BYTES,
    Acknowledge,
    Dropped,
    FromBroker,
    FromClient,
    Goodbye,
    RoundTrips,
    Signal,
    Stayed,
    decode_from_broker,
    decode_from_client,
    encode,
    malformed,
)
from godwit.wire.stamps import is_unstamped, unstamped
from godwit.wire.stream import Stream

#: Beyond our own window, what a peer may send ahead of our acknowledgements: a client's window,
#: and one more write, which may be a large frame.
UNANSWERED_BYTES_SPARE = 4 * FRAME_BYTES_MAX

#: A publication, the links it has crossed, and the bytes it came as.
Arrived: TypeAlias = tuple[Publication, int, bytes]
#: Publications that are handled together: so many are still in the processor's cache at the end.
RUN_MAX = 64


class Owner(Protocol):
    """What a port needs of the node it belongs to."""

    limits: Limits
    meters: Meters
    output_bandwidth_bytes_s: float
    refused: int
    """Connections that broke the protocol."""
    pinging: Pinging

    def now_s(self) -> float: ...

    def receive(self, source: Port, message: OtherMessage, hops: int, body: bytes) -> None:
        """A message has come in, and these were its bytes."""
        ...

    def receive_run(self, source: Port, run: Sequence[Arrived]) -> None:
        """Publications have come in, one behind the other."""
        ...

    def on_channel_request(self, source: Port, request: ChannelRequest) -> None:
        """A client wants something of a channel."""
        ...

    def on_room(self, port: Port) -> None:
        """A client has acknowledged something: there may be room for more."""
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
        self._backlog_bytes = 0
        self._is_closed = False
        self.unanswered: Unanswered[Port] = Unanswered()
        """What came from this peer, and is not acknowledged."""
        self.waiters: dict[Port, None] = {}
        """Whom something is not acknowledged because of this peer."""
        self._return_timer: asyncio.TimerHandle | None = None
        self._run: list[Arrived] = []

    @property
    def is_connected(self) -> bool:
        return self.connection is not None

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
        connection.frame_bytes_max = self._frame_bytes_max
        if lacking:
            connection.write(lacking)
        if self._acknowledged:  # It may not have heard of that.
            connection.write(encode(Acknowledge(received=self._acknowledged)))
        self.flush()

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
        self._is_closed = True
        self.unanswered.clear()
        self._release_waiters()

    def on_lost(self, reason: str, *, broke_rules: bool) -> None:
        self.connection = None
        self.detached.set()
        if broke_rules:
            self.on_read()  # What it said before that counts.
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

    def put_publications(self, frames: list[bytes]) -> None:
        """Queue publications, none of them control, if there is room."""
        self.stream.put_all(frames)

    def put(self, frame: bytes) -> None:
        """Queue anything else; if the peer fails, nobody will send it that again."""
        self.stream.put_uncounted(frame)

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

    # -- acknowledgements ----------------------------------------------------------------------

    def passed_on(self, size_bytes: int, positions: dict[Port, int]) -> None:
        """All that has come in was handled; so much of it, by now, went to other peers."""
        self.unanswered.add(self.stream.received, size_bytes, positions)
        self.settle()

    def settle(self) -> None:
        """Acknowledge what others have acknowledged to us."""
        answered, answerer = self.unanswered.settle()
        if answerer is not None:
            answerer.waiters[self] = None
            answerer.on_waited_for()
        has_news = answered > self._acknowledged
        if has_news:
            self._acknowledged = answered
        if self.connection is None:
            return
        limit_bytes = self._limits.window_bytes + UNANSWERED_BYTES_SPARE
        if self.unanswered.size_bytes > limit_bytes:
            self.connection.pause_reading()  # It was told to stop, and does not.
        else:
            self.connection.resume_reading()
        if has_news:
            self.connection.write(encode(Acknowledge(received=answered)))

    def has_answered(self, position: int) -> bool:
        return self._is_closed or self.stream.answered >= position

    def on_waited_for(self) -> None:  # noqa: B027  Most peers do not mind.
        """Somebody gets no acknowledgement because of this peer."""

    def _release_waiters(self) -> None:
        """The peer has acknowledged something, or is not waited for any more."""
        waiters, self.waiters = self.waiters, {}
        for waiter in waiters:
            waiter.settle()

    def _go_on(self) -> None:
        """Something was taken or acknowledged: write on, and let others go on."""
        self.flush()
        self._release_waiters()

    # -- what comes in -------------------------------------------------------------------------

    def on_frame(self, hops: int, body: bytes) -> None:
        try:
            message = self._decode(body)
        except DECODE_ERRORS as error:
            raise malformed(error) from None
        if type(message) is Publication:
            if not self.is_link and not is_unstamped(body):
                message, body = unstamped(message)
            self._run.append((message, hops, body))
            if len(self._run) == RUN_MAX:
                self._end_run()
            return
        if self._run:
            self._end_run()
        if type(message) is Acknowledge or type(message) is Goodbye:
            self._on_signal(message)
            return
        self.stream.received += 1
        if type(message) is Stayed:
            self.why_stayed = message.reason
        elif type(message) is RoundTrips:
            self._owner.pinging.on_round_trips(self.hop.name, message)
        elif isinstance(message, ChannelSubscription | ChannelUnsubscription):
            self._owner.on_channel_request(self, message)
        else:
            self._owner.receive(self, message, hops, body)

    #: What this kind of peer may send.
    _decode: Callable[[bytes], FromClient | FromBroker]
    _frame_bytes_max: int

    def _on_signal(self, signal: Signal) -> None:
        match signal:
            case Acknowledge(received=received):
                self.stream.acknowledge(received)
                self._go_on()
            case Goodbye(reason=reason):
                if self.connection is not None:  # It does not wait for ours.
                    self.connection.close()
                    self.connection = None
                self._owner.remove(self, f"said goodbye: {reason[:200]}")
            case _:
                assert_never(signal)

    def _end_run(self) -> None:
        """Have the publications handled that came up to here."""
        run, self._run = self._run, []
        self.stream.received += len(run)
        self._owner.receive_run(self, run)

    def on_read(self) -> None:
        if self._run:
            self._end_run()
        self._owner.finish_read(self)

    def on_writable(self) -> None:
        self.flush()

    def on_heartbeat(self) -> None:
        if self.connection is not None:
            self.connection.write(encode(Acknowledge(received=self._acknowledged)))


class ClientPort(Port):
    is_link = False

    def __init__(self, owner: Owner, stream_id: str, name: str) -> None:
        super().__init__(owner, stream_id)
        self.hop: Client = Client(name)
        self.is_durable = False
        """Publishers wait for it as long as it takes; nothing is dropped."""
        self._missing = 0
        self._is_isolated = False
        self._patience_timer: asyncio.TimerHandle | None = None

    @property
    def _return_s(self) -> float:
        return self._limits.durable_s if self.is_durable else self._limits.session_s

    def put_publication(self, frame: bytes, *, is_control: bool) -> None:
        # As long as somebody waits for this client, their windows bound its queue.
        if (self._is_isolated or self.connection is None) and not self.is_durable:
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

    def put_publications(self, frames: list[bytes]) -> None:
        if self.connection is not None and not self._is_isolated and not self._missing:
            super().put_publications(frames)
            return
        for frame in frames:
            self.put_publication(frame, is_control=False)

    def put(self, frame: bytes) -> None:
        super().put(frame)
        # Answers are never dropped: they answer requests, and who asks should listen.
        if self.stream.pending_bytes > 2 * self._limits.client_queue_bytes:
            self._give_up("asks, and does not read the answers")

    def flush(self) -> None:
        super().flush()
        if not self.stream.pending_bytes and self._missing:
            self._report_missing()
            super().flush()

    def _go_on(self) -> None:
        super()._go_on()
        connection = self.connection
        if not self.stream.pending_bytes and connection is not None and self._can_write(connection):
            self._is_isolated = False
        self._owner.on_room(self)

    def _report_missing(self) -> None:
        self.stream.put(encode(Dropped(count=self._missing)))
        self._missing = 0

    def has_answered(self, position: int) -> bool:
        return self._is_isolated or super().has_answered(position)

    def on_waited_for(self) -> None:
        if self._patience_timer is None and not self.is_durable:
            loop = asyncio.get_running_loop()
            self._patience_timer = loop.call_later(self._limits.patience_s, self._isolate)

    def _release_waiters(self) -> None:
        if self._patience_timer is not None:
            self._patience_timer.cancel()
            self._patience_timer = None
        super()._release_waiters()

    def _isolate(self) -> None:
        self._is_isolated = True
        self.traffic.isolations += self.is_connected
        self._release_waiters()

    _decode = staticmethod(decode_from_client)
    _frame_bytes_max = FRAME_BYTES_MAX


class LinkPort(Port):
    is_link = True

    def __init__(self, owner: Owner, stream_id: str, name: str) -> None:
        super().__init__(owner, stream_id)
        self.hop: Neighbour = Neighbour(name)
        self.has_begun_again = False
        """Has the neighbour failed since we know it?"""
        self.kept: list[bytes] | None = None
        """If the neighbour has forgotten the stream: what it has to get once more."""

    @property
    def _return_s(self) -> float:
        return self._limits.link_s

    def put_publication(self, frame: bytes, *, is_control: bool) -> None:
        if is_control:
            self.stream.put_first(frame)
        else:
            self.stream.put(frame)

    def begin_again(self, stream_id: str) -> None:
        """The neighbour has forgotten the stream: keep what it may not have passed on.

        Routing tables are told anew.  What policies say is out of date.
        """
        old, self.stream = self.stream, Stream(stream_id)
        self.kept = [frame for frame in old.frames() if _is_counted(frame)]
        self.stream.begin_at(old.position - len(self.kept))
        self.has_begun_again = True
        self.unanswered.clear()
        self._acknowledged = 0

    @property
    def is_remembered(self) -> bool:
        """Is there something that the neighbour had told us?"""
        return self.has_begun_again or self.stream.received > 0

    def put_kept(self) -> None:
        """Behind the tables."""
        for frame in self.kept or ():
            self.stream.put(frame)
        self.kept = None

    def flush(self) -> None:
        super().flush()
        if not self.is_connected and self.stream.pending_bytes > self._limits.link_queue_bytes:
            self._give_up("was away, and too much was waiting for it")

    _decode = staticmethod(decode_from_broker)
    _frame_bytes_max = FRAME_BYTES_MAX + STAMP_BYTES


def _is_counted(frame: bytes) -> bool:
    message = decode_from_broker(frame[HEADER.size :])
    return isinstance(message, Sweep) or (
        isinstance(message, Publication) and not message.is_control
    )
