"""Godwit: content-based publish/subscribe that keeps itself balanced."""

from __future__ import annotations

from godwit.client import ChannelEvent, ChannelEvents, Client, Event, Events, Moved, connect
from godwit.content.filters import Filter, Relation
from godwit.errors import (
    ContentError,
    EndedError,
    GodwitError,
    NotReadyError,
    PeerError,
    RefusedError,
    StayedError,
    TakenOverError,
    TextError,
    UnreachableError,
    UsageError,
)

__all__ = [
    "ChannelEvent",
    "ChannelEvents",
    "Client",
    "ContentError",
    "EndedError",
    "Event",
    "Events",
    "Filter",
    "GodwitError",
    "Moved",
    "NotReadyError",
    "PeerError",
    "RefusedError",
    "Relation",
    "StayedError",
    "TakenOverError",
    "TextError",
    "UnreachableError",
    "UsageError",
    "connect",
]
