"""HTTP operations of a broker that show its tables, and what it would do with a publication.

    GET  /subscriptions?contains=...                -> subscriptions with their filters
    GET  /clients/{name}                            -> one client: state, holdings, decisions
    POST /explain  {"record", "came_from", ...}     -> where a publication would go, and why
    GET  /decisions?after=17                        -> the last decisions of its policies

Nothing is sent to other brokers or clients.  A story of a publication is told by asking one broker
after the other (web/stories.py).
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from godwit.broker.explaining import HopExplanation
from godwit.content.values import CheckedValue
from godwit.content.wired import ShortText
from godwit.http.operations import Operation

#: Subscriptions in one answer.
LISTED_MAX = 1_000


class WhichSubscriptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    contains: ShortText = ""
    """Only those whose id or filter has this text."""

    is_local: bool = False
    """Only those of clients of this broker."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=LISTED_MAX)] = 200
    skip: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Without the first ones: for long tables, page by page."""


class TableEntryView(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription or an advertisement in the tables of a broker."""

    id: str
    client: str
    filter: str
    hop: str
    """Where it came from: `client NAME`, `module NAME` or `neighbour NAME`."""

    in_effect: bool = True
    """False: it was not confirmed to its client yet."""


class SubscriptionPage(msgspec.Struct, frozen=True, kw_only=True):
    broker: str
    subscriptions: list[TableEntryView]
    advertisements: list[TableEntryView]
    found: int
    """Subscriptions that there are, also those beyond the limit."""


class HopQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What would this broker do with a publication of this record?"""

    record: Annotated[dict[str, CheckedValue], msgspec.Meta(max_length=1_000)]
    came_from: ShortText = ""
    """The neighbour that it comes from; "": it is published here."""

    publisher: ShortText = ""
    subscriber: ShortText = ""
    """Also show the subscriptions of this client."""

    hops: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 0


class ClientState(msgspec.Struct, frozen=True, kw_only=True):
    """A client of the broker that answers."""

    client: str
    is_connected: bool
    is_isolated: bool
    """It is slow: its publishers do not wait for it, and its queue is limited."""

    dropped: int
    """Publications that were dropped because its queue was full."""

    queue_bytes: int


class PolicyDecision(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    at_s: float
    policy: str
    action: str
    subject: str
    source: str
    target: str
    reason: dict[str, float | str | None]


class ClientQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: ShortText


class ClientAccount(msgspec.Struct, frozen=True, kw_only=True):
    """What a broker knows of a client."""

    broker: str
    state: ClientState | None
    """None: it is not a client of this broker."""

    subscriptions: list[TableEntryView] = []
    advertisements: list[TableEntryView] = []
    decisions: list[PolicyDecision] = []
    """Of the policies of this broker, about this client."""


class HopAccount(msgspec.Struct, frozen=True, kw_only=True):
    broker: str
    explanation: HopExplanation
    publisher: ClientState | None = None
    """If it is a client of this broker."""

    subscriber: ClientState | None = None
    """If it is a client of this broker."""

    links: dict[str, str] = {}
    """The state of each link."""

    missing: list[str] = []
    """Parts of the network that are missing, as this broker sees it."""


class WhichDecisions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    after: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Only those with a higher number."""


class DecisionList(msgspec.Struct, frozen=True, kw_only=True):
    broker: str
    start: str
    """The id of this run: numbers begin again after a restart."""

    decisions: list[PolicyDecision]


SUBSCRIPTIONS = Operation(
    "GET", "/subscriptions", WhichSubscriptions, SubscriptionPage,
    "Subscriptions and advertisements in the tables of this broker, with their filters.",
    is_guarded=True,
)  # fmt: skip
CLIENT = Operation(
    "GET", "/clients/{name}", ClientQuestion, ClientAccount,
    "A client: its state here, what it holds, and what policies decided about it.",
    is_guarded=True,
)  # fmt: skip
EXPLAIN_HOP = Operation(
    "POST", "/explain", HopQuestion, HopAccount,
    "Where a publication would go from this broker, and why; nothing is sent.",
    is_guarded=True, is_idempotent=True,
)  # fmt: skip
DECISIONS = Operation(
    "GET", "/decisions", WhichDecisions, DecisionList,
    "The last decisions of the policies of this broker, with the numbers behind them.",
)  # fmt: skip
