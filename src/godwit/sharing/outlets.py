"""Where results of channels leave a broker.

An outlet takes results for one subscriber while it has room, and reports how far they have
arrived.  Two kinds: a session over HTTP (http_session.py), and a client's connection, which the
runtime provides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from godwit.content.channel_messages import (
    ChannelInEffect,
    ChannelResults,
    ChannelSubscriptionId,
    Position,
)
from godwit.content.messages import Refusal

Positions: TypeAlias = Mapping[ChannelSubscriptionId, Position]


class Outlet(Protocol):
    @property
    def can_take(self) -> bool:
        """Is there room for results now?"""
        ...

    @property
    def can_move(self) -> bool:
        """Can the subscriber be asked to move to another broker?"""
        ...

    def tell(self, notice: ChannelInEffect | Refusal) -> None: ...

    def push(self, results: ChannelResults, size_bytes: int) -> None: ...

    def flush(self) -> None:
        """Send what was pushed; nothing more follows for now."""
        ...

    def arrived(self, sent: Positions) -> Positions:
        """How far results have arrived; `sent` is how far they were pushed.  Polled regularly."""
        ...
