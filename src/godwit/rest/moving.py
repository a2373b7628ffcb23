"""POST /move of a broker: an operator, or the coordinator, asks it to send clients elsewhere."""

from __future__ import annotations

import msgspec

from godwit.rest.operations import Operation


class MoveRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One client, or several of them, or so many of those that are connected."""

    address: str
    """Where to: godwit://HOST:PORT."""

    broker: str = ""
    """Who should answer there, if anybody in particular."""

    client: str | None = None
    clients: list[str] = []
    count: int = 0


class MoveOutcome(msgspec.Struct, frozen=True):
    """Who went, and who did not."""

    moved: list[str]
    stayed: dict[str, str]
    """And why."""

    unknown: list[str]
    """Not connected here."""


MOVE = Operation(
    "POST",
    "/move",
    MoveRequest,
    MoveOutcome,
    "Ask clients to move to another broker, and wait until they have, or stay.",
    is_guarded=True,
)
