"""Where results of channels leave a broker: the port of a client, or a session over HTTP.

The desk knows subscribers by name, and channels.py an outlet for each name.  An outlet says whether
it has room, takes results while it has, and knows which of them have arrived for good.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from godwit.content.channels import (
    ChannelInEffect,
    ChannelResults,
    ChannelSubscriptionId,
    Position,
)
from godwit.content.messages import Refusal
from godwit.network.port import Port
from godwit.wire.frames import encode

Positions: TypeAlias = Mapping[ChannelSubscriptionId, Position]


class Outlet(Protocol):
    @property
    def can_take(self) -> bool:
        """Is there room for results now?"""
        ...

    @property
    def can_move(self) -> bool:
        """Is there somebody who can be asked to go to another broker?"""
        ...

    def tell(self, notice: ChannelInEffect | Refusal) -> None: ...

    def push(self, results: ChannelResults, size_bytes: int) -> None: ...

    def flush(self) -> None:
        """That was all for now."""
        ...

    def arrived(self, sent: Positions) -> Positions:
        """How far results have arrived; `sent` is how far they were pushed.  Asked regularly."""
        ...


class PortOutlet:
    """A client that is connected, or away for a while."""

    def __init__(self, port: Port, window_bytes: int) -> None:
        self._port = port
        self._window_bytes = window_bytes
        self._awaited = 0
        """When the client has acknowledged its stream so far, ..."""
        self._then: Positions = {}
        """... it has results so far."""

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
