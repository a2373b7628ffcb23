"""HTTP operations of the data cluster: for brokers, for producers of records, for operators.

The operations for brokers have the paper's names where it gives one: createbroker, subscribe,
unsubscribe.  A position is (execution, row) of the first row that the broker has not seen.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from godwit.content.channel_messages import Arguments, Position, Row
from godwit.content.wired import ShortText
from godwit.http.operations import Nothing, Operation

#: Default address.
LISTEN = "127.0.0.1:7600"

#: Subscriptions, or pulls, in one request.
BATCH_MAX = 10_000
RECORDS_MAX = 100_000
RECORDS_BYTES_MAX = 64 * 1024 * 1024

#: A back-end subscription, numbered by the data cluster.
BackEndId: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class Done(msgspec.Struct, frozen=True):
    """The request was carried out."""

    what: str = ""


# -- brokers -----------------------------------------------------------------------------------


class CreateBroker(msgspec.Struct, frozen=True, kw_only=True):
    """A broker has started.  Subscriptions that it held are released until it requests them."""

    broker: ShortText


class BrokerCreated(msgspec.Struct, frozen=True, kw_only=True):
    notices: int
    """The number of the last notice."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    channel: ShortText
    arguments: Arguments


class Subscribe(msgspec.Struct, frozen=True, kw_only=True):
    broker: ShortText
    subscriptions: Annotated[list[Wanted], msgspec.Meta(max_length=BATCH_MAX)]


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one Wanted."""

    id: BackEndId | None = None
    """None if it is refused."""

    start: Position = (0, 0)
    """The position of the next result."""

    error: str = ""
    """Why it is refused."""

    first: Position = (0, 0)
    """Earlier positions are of a channel of this name that was dropped."""


class Subscribed(msgspec.Struct, frozen=True, kw_only=True):
    subscriptions: list[Granted]
    """In the order of the request."""


class Unsubscribe(msgspec.Struct, frozen=True, kw_only=True):
    """The broker no longer needs these."""

    broker: ShortText
    ended: Annotated[list[BackEndId], msgspec.Meta(max_length=BATCH_MAX)] = []
    released: Annotated[list[BackEndId], msgspec.Meta(max_length=BATCH_MAX)] = []
    """Those whose subscribers may return, here or at another broker."""


class NoticesAfter(msgspec.Struct, frozen=True, kw_only=True):
    """Request notices with numbers above `after`."""

    broker: ShortText
    after: int
    wait_s: Annotated[float, msgspec.Meta(ge=0, le=60)] = 0.0


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """An execution has results for these subscriptions of the broker."""

    number: int
    channel: str
    execution: int
    subscriptions: list[BackEndId]


class ChannelDropped(msgspec.Struct, frozen=True, kw_only=True):
    """A channel was dropped, with all its subscriptions."""

    number: int
    channel: str
    through: int
    """Subscriptions to a channel of this name up to this one ended.  Later ones are to a channel
    that was created after that."""


class Notices(msgspec.Struct, frozen=True, kw_only=True):
    """All notices up to the number `through`."""

    notices: list[Notice]
    through: int
    dropped: list[ChannelDropped] = []


class PullFrom(msgspec.Struct, frozen=True, kw_only=True):
    id: BackEndId
    start: Position


class Pull(msgspec.Struct, frozen=True, kw_only=True):
    """Request results; acknowledges the results before the positions `acknowledged`."""

    broker: ShortText
    pulls: Annotated[list[PullFrom], msgspec.Meta(max_length=BATCH_MAX)]
    acknowledged: Annotated[list[PullFrom], msgspec.Meta(max_length=BATCH_MAX)] = []
    limit_bytes: Annotated[int, msgspec.Meta(ge=1)] = 4 * 1024 * 1024


class ExecutionRows(msgspec.Struct, frozen=True, kw_only=True):
    """Consecutive rows of one execution; `first` is the number of the first one."""

    execution: int
    first: int
    rows: list[Row]
    executed_s: float
    size_bytes: int


class Pulled(msgspec.Struct, frozen=True, kw_only=True):
    """All results of a subscription from `start` up to `end`, without a gap."""

    id: BackEndId
    start: Position
    end: Position
    results: list[ExecutionRows]


class PullAnswer(msgspec.Struct, frozen=True, kw_only=True):
    pulled: list[Pulled]
    unknown: list[BackEndId] = []
    """Subscriptions that do not exist, or no longer."""


CREATE_BROKER = Operation(
    "POST", "/createbroker", CreateBroker, BrokerCreated, "Register a broker that has started.",
    is_idempotent=True, is_guarded=True,
)  # fmt: skip
SUBSCRIBE = Operation(
    "POST", "/subscribe", Subscribe, Subscribed, "Subscribe a broker to channels with arguments.",
    is_idempotent=True, is_guarded=True,
)  # fmt: skip
UNSUBSCRIBE = Operation(
    "POST", "/unsubscribe", Unsubscribe, Done, "End or release subscriptions of a broker.",
    is_idempotent=True, is_guarded=True,
)  # fmt: skip
NOTICES = Operation(
    "POST", "/notices", NoticesAfter, Notices,
    "Which subscriptions have new results; waits if there are none yet.",
    is_idempotent=True, is_guarded=True,
)  # fmt: skip
PULL = Operation(
    "POST", "/pull", Pull, PullAnswer, "Results from positions on.",
    is_idempotent=True, is_guarded=True,
)  # fmt: skip

# -- producers of records ----------------------------------------------------------------------


class Records(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Records for a dataset.

    With a producer and the sequence number of the first record they are stored once, however often
    they are posted; the numbers of a producer rise.
    """

    dataset: ShortText
    records: Annotated[list[msgspec.Raw], msgspec.Meta(max_length=RECORDS_MAX)]
    producer: ShortText | None = None
    first_sequence: Annotated[int, msgspec.Meta(ge=0, le=2**62)] = 0


class Taken(msgspec.Struct, frozen=True):
    """Counts of the posted records; rejected ones are in the quarantine."""

    accepted: int
    rejected: int
    duplicates: int


class LoadFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file on the data cluster's machine becomes the content of a static dataset."""

    dataset: ShortText
    path: str


RECORDS = Operation(
    "POST", "/records", Records, Taken, "Post records; answers when they are stored.",
    is_guarded=True, body_bytes_max=RECORDS_BYTES_MAX,
)  # fmt: skip
LOAD = Operation("POST", "/load", LoadFile, Done, "Load a static dataset.", is_guarded=True)

# -- operators ---------------------------------------------------------------------------------


class ChannelStatementText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """CREATE CHANNEL ..., as text."""

    statement: str


class Statement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One statement: CREATE or DROP, of a DATASET, a FEED or a CHANNEL."""

    text: str


class RejectedRecord(msgspec.Struct, frozen=True):
    """A record that does not fit the columns of its dataset."""

    at_s: float
    reason: str
    record: str


class DatasetView(msgspec.Struct, frozen=True):
    """A dataset: definition and current size."""

    name: str
    columns: dict[str, str]
    key: str | None
    is_static: bool
    batches: int
    rows: int
    files: int
    size_bytes: int
    waiting_bytes: int
    """Accepted, not ingested yet."""

    feeds: dict[str, str]
    """Filters by name of the feed."""

    quarantined: int = 0
    """Records that did not fit; they are in the dataset `<name>_quarantine`, with the reasons."""

    rejected: list[RejectedRecord] = []
    """The last ones since the data cluster started."""


class Datasets(msgspec.Struct, frozen=True):
    """All datasets."""

    datasets: list[DatasetView]


class Named(msgspec.Struct, frozen=True):
    """A channel by name."""

    name: str


class ExecutionView(msgspec.Struct, frozen=True):
    """One execution of a channel."""

    execution: int
    at_s: float
    state: str
    rows: int
    size_bytes: int
    took_s: float | None
    timings_s: dict[str, float]
    error: str | None


class ChannelView(msgspec.Struct, frozen=True):
    """A channel: definition, subscriptions and last executions, latest first."""

    name: str
    parameters: dict[str, str]
    every_s: float | None
    query: str
    subscriptions: int
    unread_batches: int
    """Batches whose records are new to the channel, and that no ended execution has read."""

    last: list[ExecutionView]


class ChannelList(msgspec.Struct, frozen=True):
    """All channels."""

    channels: list[ChannelView]


class Explained(msgspec.Struct, frozen=True):
    """How a channel is executed: one statement for all subscriptions, and Spark's plan for it."""

    statement: str
    plan: str | None


class SkipExecution(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Pass over the planned execution of a channel, and its new records with it."""

    channel: ShortText


class ResumeChannel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Try the planned execution of a channel again that was stopped because Spark died."""

    channel: ShortText


class ExecutionSkipped(msgspec.Struct, frozen=True):
    """The execution that was skipped, and how it had failed."""

    execution: int
    attempts: int
    error: str | None


CREATE_CHANNEL = Operation(
    "POST", "/createchannel", ChannelStatementText, Done, "Create a channel.", is_guarded=True
)
STATEMENT = Operation(
    "POST", "/statement", Statement, Done, "Create or drop a dataset, feed or channel.",
    is_guarded=True,
)  # fmt: skip
SKIP_EXECUTION = Operation(
    "POST", "/skipexecution", SkipExecution, ExecutionSkipped,
    "Skip an execution that cannot succeed; 409 if none is planned.", is_guarded=True,
)  # fmt: skip
RESUME_CHANNEL = Operation(
    "POST", "/resumechannel", ResumeChannel, Done,
    "Let a channel go on that was stopped; 409 if none is planned.",
    is_guarded=True,
)  # fmt: skip
DATASETS = Operation("GET", "/datasets", Nothing, Datasets, "All datasets.")
CHANNELS = Operation("GET", "/channels", Nothing, ChannelList, "All channels.")
CHANNEL = Operation("GET", "/channels/{name}", Named, ChannelView, "One channel.")
EXPLAIN = Operation(
    "GET", "/channels/{name}/plan", Named, Explained, "How a channel is executed.", is_guarded=True
)
