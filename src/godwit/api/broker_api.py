"""HTTP operations of a broker: channels for subscribers without the client protocol, and moves.

Paper    Nguyen, Uddin, Venkatasubramanian, DEBS 2019, section 6: the names login, subscribe,
         unsubscribe and logout are the paper's, the fields are ours.

    POST /login        {"user": "u17"}                                    -> session
    POST /subscribe    {"session", "channel": "Near", "arguments": {...}}  -> subscription
    POST /results      {"session", "positions": {...}, "wait_s": 20}      -> rows, positions
    POST /unsubscribe  {"session", "subscription"}
    POST /logout       {"session"}
    POST /move         {"address": "godwit://...", "client": "u17"}       -> moved, stayed, unknown

An answer to /results has the position after its last row, for each subscription.  A subscriber that
has processed the rows sends these positions with its next request, which acknowledges the rows.
Rows that are not acknowledged are sent again, so a lost answer loses nothing.  All requests but
/move may be repeated.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from godwit.api.network_api import Authority
from godwit.content.channel_messages import Arguments, ChannelSubscriptionId, Position, Row
from godwit.content.wired import ShortText
from godwit.http.operations import Operation
from godwit.protocol.frames import Name

#: Subscriptions of one session.
SUBSCRIPTIONS_MAX = 1_000

#: At least a second, because results are fetched from the data cluster.
Wait: TypeAlias = Annotated[float, msgspec.Meta(ge=1, le=60)]
Positions: TypeAlias = Annotated[
    dict[ChannelSubscriptionId, Position], msgspec.Meta(max_length=SUBSCRIPTIONS_MAX)
]

# -- channels ----------------------------------------------------------------------------------


class Login(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A new session replaces an earlier one of the same user."""

    user: Name


class LoggedIn(msgspec.Struct, frozen=True, kw_only=True):
    """The session ends after `session_s` without a request."""

    session: str
    broker: str
    session_s: float


class SubscribeChannel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Idempotent: the same channel and arguments give the same subscription."""

    session: str
    channel: ShortText
    arguments: Arguments = {}
    start: Position | None = None
    """Resume from this position of an earlier session; by default, only new results."""

    wait_s: Wait = 10.0
    """For the subscription to be in effect."""


class ChannelSubscribed(msgspec.Struct, frozen=True):
    """All results from `start` on will be delivered."""

    subscription: ChannelSubscriptionId
    start: Position


class UnsubscribeChannel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """End one subscription for good."""

    session: str
    subscription: ChannelSubscriptionId


class ResultsAfter(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Request the results from these positions on; acknowledges the results before them."""

    session: str
    positions: Positions = {}
    wait_s: Wait = 20.0
    """For results, if there are none yet."""


class ResultRows(msgspec.Struct, frozen=True, kw_only=True):
    """Consecutive rows of one execution; `first` is the number of the first one."""

    subscription: ChannelSubscriptionId
    execution: int
    first: int
    rows: list[Row]
    executed_s: float


class ResultsPage(msgspec.Struct, frozen=True):
    """Rows, in order for each subscription."""

    results: list[ResultRows]
    positions: Positions
    """Positions after these rows, to be sent with the next request."""

    ended: dict[ChannelSubscriptionId, str]
    """Subscriptions that the data cluster no longer serves, with reasons."""


class Logout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """End the session.  Its subscriptions can be resumed, here or at another broker."""

    session: str


class Ended(msgspec.Struct, frozen=True):
    """The subscription or session has ended, now or earlier."""


LOGIN = Operation("POST", "/login", Login, LoggedIn, "Begin a session.", is_idempotent=True)
SUBSCRIBE = Operation(
    "POST", "/subscribe", SubscribeChannel, ChannelSubscribed,
    "Subscribe to a channel; answers when the subscription is in effect or refused.",
    is_idempotent=True,
)  # fmt: skip
RESULTS = Operation(
    "POST", "/results", ResultsAfter, ResultsPage,
    "Results from some positions on; waits if there are none yet.",
    is_idempotent=True,
)  # fmt: skip
UNSUBSCRIBE = Operation(
    "POST", "/unsubscribe", UnsubscribeChannel, Ended, "End a subscription.", is_idempotent=True
)
LOGOUT = Operation("POST", "/logout", Logout, Ended, "End a session.", is_idempotent=True)

# -- moves of clients --------------------------------------------------------------------------


class MoveRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which clients to move: one, several, or a number of those that are connected."""

    address: str
    """The target: godwit://HOST:PORT."""

    broker: str = ""
    """The name of the broker expected there, if any."""

    client: str | None = None
    clients: list[str] = []
    count: int = 0
    within_s: Annotated[float, msgspec.Meta(gt=0, le=3_600)] | None = None
    """The time for all of them; by default `move_timeout_s` of the broker for each."""

    authority: Authority | None = None
    """Of a coordinator: the broker refuses if another one is in charge.  Operators need none."""


class MoveOutcome(msgspec.Struct, frozen=True):
    """Clients by outcome."""

    moved: list[str]
    stayed: dict[str, str]
    """With reasons."""

    unknown: list[str]
    """Not connected to this broker."""


class DrainRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where the clients of a broker go that is going to leave the network."""

    address: str
    """The target: godwit://HOST:PORT."""

    broker: str = ""
    """The name of the broker expected there, if any."""


MOVE = Operation(
    "POST",
    "/move",
    MoveRequest,
    MoveOutcome,
    "Ask clients to move to another broker; answers when each has moved or stayed.",
    is_guarded=True,
)
DRAIN = Operation(
    "POST",
    "/drain",
    DrainRequest,
    MoveOutcome,
    "Refuse new clients and ask all clients to move to another broker; answers when none is left,"
    " or with those that stayed.  The broker can then be stopped without loss.",
    is_guarded=True,
)
