"""Godwit: content-based publish/subscribe that keeps itself balanced."""

from __future__ import annotations

from godwit.client import Client, Event, Events, connect
from godwit.content.filters import Filter, Relation
from godwit.errors import (
    ContentError,
    GodwitError,
    PeerError,
    RefusedError,
    TextError,
    UnreachableError,
    UsageError,
)

__all__ = [
    "Client",
    "ContentError",
    "Event",
    "Events",
    "Filter",
    "GodwitError",
    "PeerError",
    "RefusedError",
    "Relation",
    "TextError",
    "UnreachableError",
    "UsageError",
    "connect",
]
