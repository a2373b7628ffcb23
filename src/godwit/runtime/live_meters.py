"""The meters of a live broker: what they count, and what is sampled when a window closes.

Paper    Cheung, thesis 4.1.3, equations (4.1) to (4.3); broker/meters.py has the formulas.
Words    as in broker/meters.py.
Departs  1. ir is the rate of arrivals.  A live broker sees a publication when it reads it, so what
            has arrived is what was handled, and by how much more waits in its sockets than when the
            window began.  Ir exceeds 1 while a backlog grows.  A publisher whose window is full
            waits at its own side: then Ir stays at about 1 until the broker is relieved.
         2. d includes the acknowledgements that follow a publication, which take a broker with many
            subscribers as long as the publication itself.
         3. btx is what the system has taken from the sockets' buffers, brx what was queued for
            them.  tbusy is the longer of two times: what that takes at the configured bandwidth,
            and how long sockets took nothing, each counted by its share of the bytes: one
            subscriber that does not read is not a busy network.
         4. What waits for a peer that is away or isolated, or has a full window, is not a backlog
            of the output: no bandwidth would help it.
Tested   tests/runtime/test_live_meters.py.

The node counts messages read by read (`on_handled`); ports count what they write (port.py).
`LoadSampler` closes the windows by a timer, between reads: in the middle of one, what was just
written is still on its way to the system.

M1  Over any number of windows, the arrivals are what was handled and what waits now, as far as
    messages have their mean size.
M2  Over any number of windows, the bytes sent are those written, without those that wait now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf
from pathlib import Path
from resource import getpagesize
from time import monotonic
from typing import NamedTuple, Protocol

from godwit.broker.delays import Delays
from godwit.broker.meters import Meters
from godwit.broker.stimuli import Hop
from godwit.protocol.frames import HEADER
from godwit.runtime.port import Port

#: A timer that fires earlier than this share of a window belongs to a loop in virtual time: the
#: clock of the meters has not advanced with it, and the window stays open.
WINDOW_SHARE_MIN = 0.5


class LoadSample(NamedTuple):
    """What a node finds at its ports when a window closes."""

    waiting_bytes: int = 0
    """In the sockets of publishers and neighbours, and of incomplete frames."""

    messages_out: int = 0
    bytes_out: int = 0
    """Taken by the system in this window."""

    backlog_bytes: int = 0
    """Queued for peers that would take it, and not taken by the system."""

    blocked: float = 0.0
    """For which share of the window the output took nothing; 0 to 1."""


class LiveMeters(Meters):
    """Windows are closed by `close`, and are as long as they were."""

    __slots__ = ("_mean_bytes", "_start_s", "waiting")

    def __init__(self, *, output_bandwidth_bytes_s: float, window_s: float, now_s: float) -> None:
        super().__init__(output_bandwidth_bytes_s=output_bandwidth_bytes_s, window_s=window_s)
        self._window_end_s = inf  # They are closed from outside.
        self._start_s = now_s
        self.waiting = 0.0
        """Publications that had arrived and were not handled when the last window closed."""
        self._mean_bytes = inf
        """Of a message with its header."""

    def age_s(self, now_s: float) -> float:
        """How long the current window has been open."""
        return now_s - self._start_s

    def close(self, sample: LoadSample, now_s: float) -> None:
        """Close the current window: `last` is its load."""
        if self._messages_in:
            self._mean_bytes = self._bytes_in / self._messages_in + HEADER.size
        waiting = sample.waiting_bytes / self._mean_bytes
        arrived = self._publications_in + waiting - self.waiting
        self._publications_in = round(max(0.0, arrived))
        self.waiting = waiting
        window_s = self._window_s = self.age_s(now_s)
        self._start_s = now_s
        self._messages_out = sample.messages_out
        self._bytes_sent = sample.bytes_out
        self._backlog_bytes = sample.backlog_bytes
        sending_s = sample.bytes_out / self.output_bandwidth_bytes_s
        self._sending_s = max(sending_s, sample.blocked * window_s)
        self.last = self._reading()
        self._clear()


class ReadFigures:
    """The figures of one read; its time goes to the meters when it is over."""

    __slots__ = (
        "_answers_s", "_clock", "_delays", "_meters", "_now_s", "has_answers", "messages",
        "publications", "size_bytes",
    )  # fmt: skip

    def __init__(
        self, meters: LiveMeters, delays: Delays | None, clock: Callable[[], float]
    ) -> None:
        """`delays` if a module may read them."""
        self._meters = meters
        self._clock = clock
        self._delays = delays
        self._now_s = 0.0
        self.messages = self.publications = self.size_bytes = 0
        self.has_answers = False
        """Something was acknowledged that had not been."""
        self._answers_s = 0.0
        """The time of reads with acknowledgements only; it counts with that of the next message."""

    def count(self, messages: int, size_bytes: int) -> float:
        """Count messages of this read; the result is their time, that of the first."""
        if not self.messages:
            self._now_s = self._clock()
        self.messages += messages
        self.size_bytes += size_bytes
        return self._now_s

    def finish(self, start_s: float) -> None:
        """The read that began then is over."""
        serving_s = monotonic() - start_s
        self.has_answers = False
        if not self.messages:
            self._answers_s += serving_s
            return
        if self._delays is not None:
            self._delays.matching_s.add(serving_s / self.messages)
        serving_s += self._answers_s
        self._answers_s = 0.0
        self._meters.on_handled(self.publications, self.size_bytes, serving_s, 0.0, self.messages)
        self.messages = self.publications = self.size_bytes = 0


class SampledNode(Protocol):
    """What the sampler needs of a node."""

    ports: dict[Hop, Port]
    is_stopping: bool

    def now_s(self) -> float: ...


class LoadSampler:
    """Closes the windows of a node's meters, with a sample of its ports."""

    def __init__(self, node: SampledNode, meters: LiveMeters, delays: Delays) -> None:
        self._node = node
        self._meters = meters
        self._delays = delays
        self._gone_messages = self._gone_bytes = 0

    def start(self) -> None:
        asyncio.get_running_loop().call_later(self._meters.window_s, self._on_timer)

    def _on_timer(self) -> None:
        if self._node.is_stopping:
            return
        if self._meters.age_s(self._node.now_s()) >= WINDOW_SHARE_MIN * self._meters.window_s:
            self.close_window()
        self.start()

    def close_window(self) -> None:
        now_s = self._node.now_s()
        sample = self._sample(self._meters.age_s(now_s))
        self._meters.close(sample, now_s)
        # What waits now takes as long as it takes at the rate of the last window.
        load, delays = self._meters.last, self._delays
        delays.input_queue_s.value = self._meters.waiting * load.matching_delay_s
        rate_bytes_s = load.bytes_out_per_s or self._meters.output_bandwidth_bytes_s
        queue_s = sample.backlog_bytes / rate_bytes_s
        delays.to_clients_s.value = delays.to_neighbours_s.value = queue_s

    def on_removed(self, port: Port) -> None:
        """A port is gone: what it has sent counts in this window."""
        messages, size_bytes = port.traffic.take(0)
        self._gone_messages += messages
        self._gone_bytes += size_bytes

    def _sample(self, window_s: float) -> LoadSample:
        messages_out, bytes_out = self._gone_messages, self._gone_bytes
        self._gone_messages = self._gone_bytes = 0
        waiting_bytes = backlog_bytes = 0
        wanted_bytes = blocked_bytes = 0.0
        for port in self._node.ports.values():
            traffic, connection = port.traffic, port.connection
            unsent_bytes = 0 if connection is None else connection.unsent_bytes
            messages, taken_bytes = traffic.take(unsent_bytes)
            messages_out += messages
            bytes_out += taken_bytes
            if connection is None:
                continue
            backlog_bytes += port.backlog_bytes
            if traffic.has_published:
                waiting_bytes += connection.unread_bytes
            wanted_bytes += taken_bytes + unsent_bytes
            blocked = min(1.0, connection.take_blocked_s() / window_s)
            blocked_bytes += (taken_bytes + unsent_bytes) * blocked
        return LoadSample(
            waiting_bytes=waiting_bytes,
            messages_out=messages_out,
            bytes_out=bytes_out,
            backlog_bytes=backlog_bytes,
            blocked=blocked_bytes / wanted_bytes if wanted_bytes else 0.0,
        )


def resident_bytes() -> int:
    """The memory of this process; 0 where the system does not say."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except OSError:
        return 0
    return int(pages) * getpagesize()
