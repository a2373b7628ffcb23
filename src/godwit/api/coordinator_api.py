"""HTTP operations of the broker coordination server (BCS): for brokers, users and operators.

Paper    Nguyen, Uddin, Venkatasubramanian, DEBS 2019, sections 3 and 6: the names registeruser,
         registerbroker and requestbroker are the paper's, the fields are ours.
Words    F_j -> load; lambda_k -> rates[k]; BE subscription -> a number, given by the data cluster;
         FE subscription -> one entry of `subscribers`.

A broker registers when it starts, and then sends a report every `report_s`, as the answer says.
Both may be repeated at any time.  A report from an unregistered broker is answered with 404: it
registers again and continues.  While the server is down, brokers and users continue without it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from godwit.api.network_api import Authority, BrokerAccount
from godwit.content.geography import GeoPoint
from godwit.http.operations import Nothing, Operation
from godwit.protocol.frames import Name

#: Default address.
LISTEN = "127.0.0.1:7500"
#: A report of 100,000 subscribers with 100 BE subscriptions each fits.
REPORT_BYTES_MAX = 128 * 1024 * 1024

Rate = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
"""Bytes per second."""


BackendId = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""A BE subscription, as the data cluster numbers it."""


class RegisterUser(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A user; brokers know it as a client of this name."""

    user: Name
    location: GeoPoint | None = None


class RegisterBroker(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A broker: its address for clients, and for requests to move them."""

    broker: Name
    url: str
    """godwit://HOST:PORT."""

    http: str | None = None
    """http://HOST:PORT.  Without it clients of this broker cannot be moved."""

    location: GeoPoint | None = None


class Registered(msgspec.Struct, frozen=True):
    """Registered under `name`; a broker reports its load every `report_s`."""

    name: str
    report_s: float
    authority: Authority | None = None
    """Of this coordinator: a broker obeys no lower one from now on."""


class RequestBroker(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A user requests a broker; `location` is its current one."""

    user: Name
    location: GeoPoint | None = None


class Assigned(msgspec.Struct, frozen=True):
    """The broker to connect to."""

    broker: str
    url: str
    why: str


class LoadReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The load of a broker."""

    broker: Name
    bytes_in_per_s: Rate
    bytes_out_per_s: Rate
    rates: dict[BackendId, Rate] = {}
    """Moving average of the results of each BE subscription.  Those that the broker has not held
    for long enough are left out; their last known rates count."""

    subscribers: dict[Name, list[BackendId]] = {}
    """BE subscriptions behind the FE subscriptions, for each subscriber that is online."""

    account: BrokerAccount | None = None
    """State, links and load of the broker."""


class BrokerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A registered broker and its last report."""

    broker: str
    url: str
    http: str | None
    location: GeoPoint | None
    is_live: bool
    report_age_s: float | None
    """Since its last report; None if there was none since the server started."""

    bytes_in_per_s: float = 0.0
    bytes_out_per_s: float = 0.0
    """As reported."""

    load: float = 0.0
    """F_j: the load of its subscribers, from rates and subscriptions."""

    subscribers: int = 0
    be_subscriptions: int = 0


class Balance(msgspec.Struct, frozen=True, kw_only=True):
    """The balance of the live brokers that have reported."""

    brokers: int = 0
    subscribers: int = 0
    fe_subscriptions: int = 0
    be_subscriptions: int = 0
    """Of all brokers together: one that two brokers hold counts once."""

    sharing: float = 0.0
    """FE subscriptions for each BE subscription."""

    cov: float = 0.0
    mean_load: float = 0.0
    maximum_load: float = 0.0


class Brokers(msgspec.Struct, frozen=True):
    """All brokers, and their balance."""

    brokers: list[BrokerStatus]
    balance: Balance


class Outcome(StrEnum):
    """State of a move.  `WAITING` and `ASKED` change, the others are final."""

    PROPOSED = "proposed"
    """A dry run: the client is not asked."""

    WAITING = "waiting"
    ASKED = "asked"
    MOVED = "moved"
    STAYED = "stayed"
    UNKNOWN = "unknown"
    """Asked; the outcome was not reported."""

    REJECTED = "rejected"
    """An operator does not want it: this client is not proposed again for a while."""

    DROPPED = "dropped"
    """The client was not asked: it was offline, or the move had become useless."""


class MoveRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One move of one client: reason and outcome."""

    number: int
    plan: int
    client: str
    source: str
    target: str
    why: str
    outcome: Outcome
    because: str = ""
    """Why it stayed, or was dropped."""

    asked_s: float | None = None
    ended_s: float | None = None


class PlanRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A plan with moves: the balance before, and as expected after it."""

    number: int
    made_s: float
    stage: str
    why: str
    is_dry_run: bool
    cov_before: float
    cov_after: float
    load_before: dict[str, float]
    load_after: dict[str, float]
    """F_j of each broker if all moves are made."""

    ended_s: float | None = None
    """When the last move had an outcome."""


class LastPlan(msgspec.Struct, frozen=True):
    """The last plan with moves, and the result of the last look at the brokers."""

    looked_s: float | None
    says: str
    waits_for: list[str]
    """Brokers that must report before the next look."""

    plan: PlanRecord | None
    moves: list[MoveRecord]
    outcomes: dict[str, int]


class WhichMoves(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The latest moves, of all clients or of one."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 100
    client: str | None = None


class RejectedMove(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A move that a dry run has proposed."""

    number: Annotated[int, msgspec.Meta(ge=0, le=2**53)]
    reason: Annotated[str, msgspec.Meta(max_length=500)] = ""


class Moves(msgspec.Struct, frozen=True):
    """Moves, latest first; `outcomes` counts all moves."""

    moves: list[MoveRecord]
    outcomes: dict[str, int]


REGISTER_USER = Operation(
    "POST", "/registeruser", RegisterUser, Registered, "Register a user.",
    is_idempotent=True,
)  # fmt: skip
REGISTER_BROKER = Operation(
    "POST", "/registerbroker", RegisterBroker, Registered,
    "Register a broker, or update its registration.",
    is_idempotent=True, is_guarded=True,
)  # fmt: skip
REQUEST_BROKER = Operation(
    "POST", "/requestbroker", RequestBroker, Assigned, "Request a broker for a user.",
    is_idempotent=True,
)  # fmt: skip
LOAD_REPORT = Operation(
    "POST", "/loadreport", LoadReport, Registered, "Report the load of a broker.",
    is_idempotent=True, is_guarded=True, body_bytes_max=REPORT_BYTES_MAX,
)  # fmt: skip
BROKERS = Operation("GET", "/brokers", Nothing, Brokers, "All brokers and their balance.")
PLAN = Operation(
    "GET", "/plan", Nothing, LastPlan, "The last plan, with reasons and outcomes of its moves."
)
MOVES = Operation("GET", "/moves", WhichMoves, Moves, "Moves, latest first, with reasons.")
REJECT_MOVE = Operation(
    "POST", "/moves/reject", RejectedMove, MoveRecord,
    "Reject a move that a dry run has proposed: its client is not proposed again for `hold_s`.",
    is_idempotent=True, is_guarded=True,
)  # fmt: skip
