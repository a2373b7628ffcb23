"""A client's port as an outlet for results of channels (sharing/outlets.py).

Results are put into the client's stream while its window has room.  They have arrived when the
client has acknowledged the stream up to the position behind them.
"""

from __future__ import annotations

from godwit.content.channel_messages import ChannelInEffect, ChannelRequest, ChannelResults
from godwit.content.messages import Refusal
from godwit.protocol.frames import encode
from godwit.runtime.port import Port
from godwit.sharing.live_channels import LiveChannels
from godwit.sharing.outlets import Positions


class PortOutlet:
    """An Outlet to a client that is connected, or away for a while."""

    def __init__(self, port: Port, window_bytes: int) -> None:
        self._port = port
        self._window_bytes = window_bytes
        self._awaited = 0
        """When the client has acknowledged this position of its stream, ..."""
        self._then: Positions = {}
        """... it has results up to these."""

    @property
    def can_take(self) -> bool:
        stream = self._port.stream
        waiting_bytes = stream.pending_bytes + stream.unacknowledged_bytes
        return self._port.is_connected and waiting_bytes < self._window_bytes

    @property
    def can_move(self) -> bool:
        return self._port.is_connected

    def tell(self, notice: ChannelInEffect | Refusal) -> None:
        self._port.put(encode(notice))

    def push(self, results: ChannelResults, size_bytes: int) -> None:
        self._port.stream.put(encode(results))

    def flush(self) -> None:
        self._port.flush()

    def arrived(self, sent: Positions) -> Positions:
        stream = self._port.stream
        if stream.answered < self._awaited:
            return {}
        then, self._awaited, self._then = self._then, stream.position, sent
        return then


def ask_channels(
    channels: LiveChannels, source: Port, request: ChannelRequest, window_bytes: int
) -> None:
    """Pass on a client's request; it enters with its first one."""
    name = source.hop.name
    if not channels.has(name):
        channels.enter(name, PortOutlet(source, window_bytes))
    channels.ask(name, request)
