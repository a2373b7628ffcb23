"""What brokers, users and the broker coordination server (BCS) say to each other.

Paper    Nguyen, Uddin, Venkatasubramanian, DEBS 2019, sections 3 and 6: the names registeruser,
         registerbroker and requestbroker are the paper's, the fields are ours.
Words    F_j -> load; lambda_k -> rates[k]; BE subscription -> a number, given by the data cluster;
         FE subscription -> one entry of `subscribers`.

A broker registers when it starts, and then reports every `report_s`, which it is told.  Both may be
repeated at any time.  A report of a broker that the server does not know is answered with 404:
register, and go on.  While the server is not there, everybody else goes on without it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from godwit.rest.operations import Nothing, Operation
from godwit.wire.frames import Name

#: Where the server listens, unless it is told otherwise.
LISTEN = "127.0.0.1:7500"
#: A report of 100,000 subscribers with 100 BE subscriptions each fits.
REPORT_BYTES_MAX = 128 * 1024 * 1024

Rate = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
"""Bytes per second."""


BackendId = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""A BE subscription, as the data cluster numbers it."""


class Location(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A place on earth, in degrees."""

    latitude: Annotated[float, msgspec.Meta(ge=-90, le=90)]
    longitude: Annotated[float, msgspec.Meta(ge=-180, le=180)]


class RegisterUser(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A user, known to brokers as a client of this name."""

    user: Name
    location: Location | None = None


class RegisterBroker(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A broker: where clients reach it, and where it can be asked to move them."""

    broker: Name
    url: str
    """godwit://HOST:PORT."""

    http: str | None = None
    """http://HOST:PORT.  Without it no client of this broker can be moved elsewhere."""

    location: Location | None = None


class Registered(msgspec.Struct, frozen=True):
    """Who is known now; a broker reports its load every `report_s`."""

    name: str
    report_s: float


class RequestBroker(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A user wants to know where to go; with a location, where it is now."""

    user: Name
    location: Location | None = None


class Assigned(msgspec.Struct, frozen=True):
    """Where to go."""

    broker: str
    url: str
    why: str


class LoadReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a broker has to do."""

    broker: Name
    bytes_in_per_s: Rate
    bytes_out_per_s: Rate
    rates: dict[BackendId, Rate] = {}
    """What each BE subscription brings, as a moving average.  One that the broker has not held for
    long enough to know is left out; then what was last known of it counts."""

    subscribers: dict[Name, list[BackendId]] = {}
    """Who is online here, and the BE subscriptions behind its FE subscriptions."""


class BrokerShown(msgspec.Struct, frozen=True, kw_only=True):
    """A broker as the server sees it."""

    broker: str
    url: str
    http: str | None
    location: Location | None
    is_live: bool
    report_age_s: float | None
    """Since its last report; none if there was none since the server started."""

    bytes_in_per_s: float = 0.0
    bytes_out_per_s: float = 0.0
    """As it says."""

    load: float = 0.0
    """F_j: what its subscribers should cost it, from rates and holdings."""

    subscribers: int = 0
    be_subscriptions: int = 0


class Balance(msgspec.Struct, frozen=True, kw_only=True):
    """How the live brokers that have reported stand."""

    brokers: int = 0
    subscribers: int = 0
    fe_subscriptions: int = 0
    be_subscriptions: int = 0
    """At all of them together: one that two brokers hold counts once."""

    sharing: float = 0.0
    """FE subscriptions for each BE subscription."""

    cov: float = 0.0
    mean_load: float = 0.0
    maximum_load: float = 0.0


class Brokers(msgspec.Struct, frozen=True):
    """All brokers, and their balance."""

    brokers: list[BrokerShown]
    balance: Balance


class Outcome(StrEnum):
    """How far a move is.  `WAITING` and `ASKED` change, the others are for good."""

    PROPOSED = "proposed"
    """A dry run: nobody was asked."""

    WAITING = "waiting"
    ASKED = "asked"
    MOVED = "moved"
    STAYED = "stayed"
    UNKNOWN = "unknown"
    """Asked, and nobody said what came of it."""

    DROPPED = "dropped"
    """The client was not asked: it was not there, or it was no use any more."""


class MoveRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One move of one client: why, and what came of it."""

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
    """A plan with moves: what it was made of, and what it was to bring."""

    number: int
    made_s: float
    stage: str
    why: str
    is_dry_run: bool
    cov_before: float
    cov_after: float
    load_before: dict[str, float]
    load_after: dict[str, float]
    """F of each broker, if all moves are made."""

    ended_s: float | None = None
    """When the last move had an outcome."""


class LastPlan(msgspec.Struct, frozen=True):
    """The last plan that had moves, and what the last look at the brokers has shown."""

    looked_s: float | None
    says: str
    waits_for: list[str]
    """Brokers that have to report before the next look."""

    plan: PlanRecord | None
    moves: list[MoveRecord]
    outcomes: dict[str, int]


class WhichMoves(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The latest moves, or the latest of one client."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 100
    client: str | None = None


class Moves(msgspec.Struct, frozen=True):
    """Moves, the latest first; the counts are of all."""

    moves: list[MoveRecord]
    outcomes: dict[str, int]


REGISTER_USER = Operation(
    "POST", "/registeruser", RegisterUser, Registered, "A user makes itself known.",
    is_idempotent=True,
)  # fmt: skip
REGISTER_BROKER = Operation(
    "POST", "/registerbroker", RegisterBroker, Registered,
    "A broker makes itself known, or says that something about it has changed.",
    is_idempotent=True, is_guarded=True,
)  # fmt: skip
REQUEST_BROKER = Operation(
    "POST", "/requestbroker", RequestBroker, Assigned, "A user asks where to go.",
    is_idempotent=True,
)  # fmt: skip
LOAD_REPORT = Operation(
    "POST", "/loadreport", LoadReport, Registered, "A broker says what it has to do.",
    is_idempotent=True, is_guarded=True, body_bytes_max=REPORT_BYTES_MAX,
)  # fmt: skip
BROKERS = Operation("GET", "/brokers", Nothing, Brokers, "All brokers, and how they stand.")
PLAN = Operation("GET", "/plan", Nothing, LastPlan, "The last plan, with reasons and outcomes.")
MOVES = Operation("GET", "/moves", WhichMoves, Moves, "What was moved, the latest first, and why.")
