"""What brokers ask of the data cluster, and what it answers: the bodies of its HTTP requests.

The operations have the paper's names where it gives one: createbroker, subscribe, unsubscribe.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from godwit.content.channels import ARGUMENTS_MAX, Position, Row
from godwit.content.messages import ShortText
from godwit.content.values import CheckedValue

#: Of a back-end subscription, unique in the data cluster.
BackEndId: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Arguments: TypeAlias = Annotated[
    dict[ShortText, CheckedValue], msgspec.Meta(max_length=ARGUMENTS_MAX)
]

#: Subscriptions, or pulls, in one request.
BATCH_MAX = 10_000


class CreateBroker(msgspec.Struct, frozen=True, kw_only=True):
    """A broker has started: what it held before is released, unless it asks for it again."""

    broker: ShortText


class BrokerCreated(msgspec.Struct, frozen=True, kw_only=True):
    notices: int
    """The number of the last notice there has been."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    channel: ShortText
    arguments: Arguments


class Subscribe(msgspec.Struct, frozen=True, kw_only=True):
    broker: ShortText
    subscriptions: Annotated[list[Wanted], msgspec.Meta(max_length=BATCH_MAX)]


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """One answer for each that was wanted."""

    id: BackEndId | None = None
    start: Position = (0, 0)
    """Where the results begin that are still to come."""

    error: str = ""
    """Why there is no subscription, if there is none."""


class Subscribed(msgspec.Struct, frozen=True, kw_only=True):
    subscriptions: list[Granted]


class Unsubscribe(msgspec.Struct, frozen=True, kw_only=True):
    """A broker needs these no more; of `released` somebody may still come back, elsewhere."""

    broker: ShortText
    ended: Annotated[list[BackEndId], msgspec.Meta(max_length=BATCH_MAX)] = []
    released: Annotated[list[BackEndId], msgspec.Meta(max_length=BATCH_MAX)] = []


class NoticesAfter(msgspec.Struct, frozen=True, kw_only=True):
    """A broker waits for notices later than the last one that it has heard."""

    broker: ShortText
    after: int
    wait_s: Annotated[float, msgspec.Meta(ge=0, le=60)] = 0.0


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """There are new results for these subscriptions."""

    number: int
    channel: str
    execution: int
    subscriptions: list[BackEndId]


class Notices(msgspec.Struct, frozen=True, kw_only=True):
    """All there have been up to the number `through`."""

    notices: list[Notice]
    through: int


class PullFrom(msgspec.Struct, frozen=True, kw_only=True):
    id: BackEndId
    start: Position


class Pull(msgspec.Struct, frozen=True, kw_only=True):
    """Results of several subscriptions; and up to which position the broker needs none again."""

    broker: ShortText
    pulls: Annotated[list[PullFrom], msgspec.Meta(max_length=BATCH_MAX)]
    acknowledged: Annotated[list[PullFrom], msgspec.Meta(max_length=BATCH_MAX)] = []
    limit_bytes: Annotated[int, msgspec.Meta(ge=1)] = 4 * 1024 * 1024


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """Of one execution, all or some in a row."""

    execution: int
    first: int
    rows: list[Row]
    executed_s: float
    size_bytes: int


class Pulled(msgspec.Struct, frozen=True, kw_only=True):
    """What there is from `start` up to `end`, without a gap."""

    id: BackEndId
    start: Position
    end: Position
    results: list[Rows]


class PullAnswer(msgspec.Struct, frozen=True, kw_only=True):
    pulled: list[Pulled]
    unknown: list[BackEndId] = []
    """Subscriptions that there are not, or no more."""
