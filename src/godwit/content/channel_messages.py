"""Messages about channels between clients and brokers.

A channel is a query with parameters, which the data cluster executes repeatedly; a subscription
to it is its name and arguments.  Each execution adds rows to the results of a subscription: rows
0, 1, 2 ... of execution 1, then those of a later one.  A position is the execution and the number
of the first row that a subscriber has not received, so positions compare as pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, NewType, TypeAlias, final

import msgspec

from godwit.content.messages import SEQUENCE_MAX
from godwit.content.values import CheckedValue, Value, check_attribute, check_value
from godwit.content.wired import ShortText, Wired
from godwit.errors import ContentError

ChannelSubscriptionId = NewType("ChannelSubscriptionId", str)

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=SEQUENCE_MAX)]
#: Execution and row.
Position: TypeAlias = tuple[_Count, _Count]
#: Attributes without a value are left out.
Row: TypeAlias = dict[str, Value]

ARGUMENTS_MAX = 32
Arguments: TypeAlias = Annotated[
    dict[ShortText, CheckedValue], msgspec.Meta(max_length=ARGUMENTS_MAX)
]


def check_arguments(arguments: Mapping[str, object]) -> dict[str, Value]:
    """A copy with plain values, if they can be arguments of a channel."""
    if len(arguments) > ARGUMENTS_MAX:
        raise ContentError(
            f"got {len(arguments)} arguments; a channel has at most {ARGUMENTS_MAX} parameters"
        )
    return {check_attribute(name): check_value(value, of=name) for name, value in arguments.items()}


def was_dropped(channel: str) -> str:
    """The reason with which every subscription to a channel ends when it is dropped."""
    return f"channel {channel} was dropped"


@final
class ChannelSubscription(Wired, frozen=True, kw_only=True, tag=31):
    """A client subscribes to the results of a channel."""

    id: Annotated[ChannelSubscriptionId, msgspec.Meta(max_length=256)]
    channel: ShortText
    arguments: Arguments
    start: Position | None = None
    """Where to resume; None is from now on."""


@final
class ChannelUnsubscription(Wired, frozen=True, kw_only=True, tag=32):
    id: Annotated[ChannelSubscriptionId, msgspec.Meta(max_length=256)]


@final
class ChannelInEffect(Wired, frozen=True, kw_only=True, tag=33):
    """All results from this position on will be delivered."""

    id: ChannelSubscriptionId
    start: Position


@final
class ChannelResults(Wired, frozen=True, kw_only=True, tag=34):
    """Consecutive rows of one execution."""

    id: ChannelSubscriptionId
    execution: int
    first: int
    """The number of the first row."""

    rows: list[Row]
    executed_s: float
    """When the execution began, in seconds since 1970."""


ChannelRequest: TypeAlias = ChannelSubscription | ChannelUnsubscription
ChannelNotice: TypeAlias = ChannelInEffect | ChannelResults
