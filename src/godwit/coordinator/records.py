"""What the coordinator remembers of brokers and users, and how its memory changes.

Loads are not remembered: brokers report again soon, and old loads are worse than none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from godwit.rest.bcs import Location, MoveRecord, PlanRecord


class BrokerRecord(msgspec.Struct, frozen=True):
    broker: str
    url: str
    http: str | None
    location: Location | None


class UserRecord(msgspec.Struct, frozen=True):
    user: str
    location: Location | None
    placed: int = 0
    """How often a broker was chosen for it."""

    broker: str | None = None
    """Which, last time."""


class Forgotten(msgspec.Struct, frozen=True):
    """A move that is no longer of interest."""

    number: int


Change: TypeAlias = BrokerRecord | UserRecord | PlanRecord | MoveRecord | Forgotten


@dataclass
class Memory:
    """All changes, one after the other."""

    brokers: dict[str, BrokerRecord] = field(default_factory=dict)
    users: dict[str, UserRecord] = field(default_factory=dict)
    plan: PlanRecord | None = None
    moves: dict[int, MoveRecord] = field(default_factory=dict)

    def apply(self, change: Change) -> None:
        match change:
            case BrokerRecord():
                self.brokers[change.broker] = change
            case UserRecord():
                self.users[change.user] = change
            case PlanRecord():
                self.plan = change
            case MoveRecord():
                self.moves[change.number] = change
            case Forgotten():
                del self.moves[change.number]
