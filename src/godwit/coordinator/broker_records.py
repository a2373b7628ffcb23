"""The persistent state of the coordinator: brokers, users, the last plan and moves, changes of the
network, and the authority of the last start; as changes.

Loads are not stored: brokers report again soon, and old loads are worse than none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from godwit.api.coordinator_api import MoveRecord, PlanRecord
from godwit.api.network_api import Authority, NetworkChange
from godwit.content.geography import GeoPoint


class BrokerRecord(msgspec.Struct, frozen=True):
    broker: str
    url: str
    http: str | None
    location: GeoPoint | None


class UserRecord(msgspec.Struct, frozen=True):
    user: str
    location: GeoPoint | None
    placed: int = 0
    """How often a broker was chosen for it."""

    broker: str | None = None
    """The last broker chosen."""


class Forgotten(msgspec.Struct, frozen=True):
    """A move that is no longer needed."""

    number: int


class AuthorityRecord(msgspec.Struct, frozen=True):
    """The authority of the last run of the coordinator."""

    authority: Authority


class BrokerLeft(msgspec.Struct, frozen=True):
    """A broker has left the network for good."""

    broker: str


class ForgottenChange(msgspec.Struct, frozen=True):
    """A change of the network that is no longer shown."""

    number: int


#: Records that replace one of the same kind and name.
Kept: TypeAlias = (
    BrokerRecord | UserRecord | PlanRecord | MoveRecord | NetworkChange | AuthorityRecord
)
Change: TypeAlias = Kept | Forgotten | BrokerLeft | ForgottenChange


@dataclass
class Memory:
    """The state after all changes."""

    brokers: dict[str, BrokerRecord] = field(default_factory=dict)
    users: dict[str, UserRecord] = field(default_factory=dict)
    plan: PlanRecord | None = None
    moves: dict[int, MoveRecord] = field(default_factory=dict)
    changes: dict[int, NetworkChange] = field(default_factory=dict)
    authority: Authority | None = None

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
            case NetworkChange():
                self.changes[change.number] = change
            case AuthorityRecord():
                self.authority = change.authority
            case Forgotten():
                del self.moves[change.number]
            case BrokerLeft():
                self.brokers.pop(change.broker, None)
            case ForgottenChange():
                del self.changes[change.number]
