"""What subscribers that only speak HTTP ask of a broker: the results of channels.

Paper    Nguyen, Uddin, Venkatasubramanian, DEBS 2019, section 6: the names login, subscribe,
         unsubscribe and logout are the paper's, the fields are ours.

    POST /login        {"user": "u17"}                                    -> session
    POST /subscribe    {"session", "channel": "Near", "arguments": {...}}  -> subscription
    POST /results      {"session", "positions": {...}, "wait_s": 20}      -> rows, positions
    POST /unsubscribe  {"session", "subscription"}
    POST /logout       {"session"}

Every answer to /results says how far it goes, for each subscription.  Whoever has dealt with it
passes these positions on with the next request: they acknowledge it.  What is not acknowledged is
sent again, so that an answer that is lost on the way is no loss.  All of it may be repeated.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from godwit.channels.requests import Arguments
from godwit.content.channels import ChannelSubscriptionId, Position, Row
from godwit.content.messages import ShortText
from godwit.rest.operations import Operation
from godwit.wire.frames import Name

#: Of one session.
SUBSCRIPTIONS_MAX = 1_000

#: What there is has to be fetched from the data cluster, which takes some time.
Wait: TypeAlias = Annotated[float, msgspec.Meta(ge=1, le=60)]
Positions: TypeAlias = Annotated[
    dict[ChannelSubscriptionId, Position], msgspec.Meta(max_length=SUBSCRIPTIONS_MAX)
]


class Login(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A user who has a session already gets another one in its place."""

    user: Name


class LoggedIn(msgspec.Struct, frozen=True, kw_only=True):
    """The session ends when nothing was asked for `session_s`."""

    session: str
    broker: str
    session_s: float


class SubscribeChannel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Who asks again for the same, gets the same subscription."""

    session: str
    channel: ShortText
    arguments: Arguments = {}
    start: Position | None = None
    """Go on from there, as results of another session said; from now on without it."""

    wait_s: Wait = 10.0
    """For the subscription to be in effect."""


class ChannelSubscribed(msgspec.Struct, frozen=True):
    """All results from this position on can be had."""

    subscription: ChannelSubscriptionId
    start: Position


class UnsubscribeChannel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One subscription, for good."""

    session: str
    subscription: ChannelSubscriptionId


class ResultsAfter(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What there is behind these positions, which are acknowledged with it."""

    session: str
    positions: Positions = {}
    wait_s: Wait = 20.0
    """For results, if there are none yet."""


class ResultRows(msgspec.Struct, frozen=True, kw_only=True):
    """Of one execution, all or some in a row; `first` is the number of the first."""

    subscription: ChannelSubscriptionId
    execution: int
    first: int
    rows: list[Row]
    executed_s: float


class Results(msgspec.Struct, frozen=True):
    """Rows, in their order for each subscription, and how far they go."""

    results: list[ResultRows]
    positions: Positions
    """Pass them on with the next request."""

    ended: dict[ChannelSubscriptionId, str]
    """Subscriptions that the data cluster does not serve any more, and why."""


class Logout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who does not unsubscribe may come back for its results, here or at another broker."""

    session: str


class Ended(msgspec.Struct, frozen=True):
    """It is over, or was already."""


LOGIN = Operation("POST", "/login", Login, LoggedIn, "A user begins a session.", is_idempotent=True)
SUBSCRIBE = Operation(
    "POST", "/subscribe", SubscribeChannel, ChannelSubscribed,
    "Results of a channel; answers when the subscription is in effect, or why it is refused.",
    is_idempotent=True,
)  # fmt: skip
RESULTS = Operation(
    "POST", "/results", ResultsAfter, Results,
    "Results behind some positions; waits for some if there are none yet.",
    is_idempotent=True,
)  # fmt: skip
UNSUBSCRIBE = Operation(
    "POST", "/unsubscribe", UnsubscribeChannel, Ended, "A subscription ends.", is_idempotent=True
)
LOGOUT = Operation("POST", "/logout", Logout, Ended, "A session ends.", is_idempotent=True)
