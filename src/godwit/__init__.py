"""Godwit: content-based publish/subscribe that keeps itself balanced."""

from __future__ import annotations

from godwit.content.filters import Filter, Relation
from godwit.errors import ContentError, GodwitError, PeerError, TextError, UsageError

__all__ = [
    "ContentError",
    "Filter",
    "GodwitError",
    "PeerError",
    "Relation",
    "TextError",
    "UsageError",
]
