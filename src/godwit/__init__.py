"""Godwit: content-based publish/subscribe that keeps itself balanced."""

from __future__ import annotations

from godwit.client import (
    ChannelEvent,
    ChannelEvents,
    Client,
    Event,
    Events,
    Gap,
    GapReason,
    Gaps,
    Moved,
    connect,
)
from godwit.content.filters import Filter, Relation
from godwit.errors import (
    ContentError,
    GodwitError,
    NotReadyError,
    PeerError,
    RefusedError,
    StayedError,
    TextError,
    UnreachableError,
    UsageError,
)

__all__ = [
    "ChannelEvent",
    "ChannelEvents",
    "Client",
    "ContentError",
    "Event",
    "Events",
    "Filter",
    "Gap",
    "GapReason",
    "Gaps",
    "GodwitError",
    "Moved",
    "NotReadyError",
    "PeerError",
    "RefusedError",
    "Relation",
    "StayedError",
    "TextError",
    "UnreachableError",
    "UsageError",
    "connect",
]
