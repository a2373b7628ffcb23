"""What can be asked of the data cluster: by brokers, by those who post records, by operators."""

from __future__ import annotations

from typing import Annotated

import msgspec

from godwit.channels.requests import (
    BrokerCreated,
    CreateBroker,
    Notices,
    NoticesAfter,
    Pull,
    PullAnswer,
    Subscribe,
    Subscribed,
    Unsubscribe,
)
from godwit.content.messages import ShortText
from godwit.rest.operations import Nothing, Operation

#: Unless it is told otherwise.
LISTEN = "127.0.0.1:7600"

RECORDS_MAX = 100_000
RECORDS_BYTES_MAX = 64 * 1024 * 1024


class Done(msgspec.Struct, frozen=True):
    """It is done."""

    what: str = ""


class CreateChannel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """CREATE CHANNEL ..., as text."""

    statement: str


class Statement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One statement: CREATE or DROP, of a DATASET, a FEED or a CHANNEL."""

    text: str


class Records(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Records for a dataset.

    With a producer and the number of the first, they count once, however often they are posted;
    numbers of one producer rise.
    """

    dataset: ShortText
    records: Annotated[list[msgspec.Raw], msgspec.Meta(max_length=RECORDS_MAX)]
    producer: ShortText | None = None
    first_sequence: Annotated[int, msgspec.Meta(ge=0, le=2**62)] = 0


class Taken(msgspec.Struct, frozen=True):
    """What became of records that were posted; those rejected are in the quarantine."""

    accepted: int
    rejected: int
    duplicates: int


class Load(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of this machine becomes the content of a static dataset."""

    dataset: ShortText
    path: str


class DatasetShown(msgspec.Struct, frozen=True):
    """A dataset as it stands."""

    name: str
    columns: dict[str, str]
    key: str | None
    is_static: bool
    batches: int
    rows: int
    files: int
    size_bytes: int
    waiting_bytes: int
    """Taken, and not ingested yet."""

    feeds: dict[str, str]
    """Filters by name of the feed."""


class Datasets(msgspec.Struct, frozen=True):
    """All datasets."""

    datasets: list[DatasetShown]


class Named(msgspec.Struct, frozen=True):
    """Which channel."""

    name: str


class ExecutionShown(msgspec.Struct, frozen=True):
    """One execution of a channel."""

    execution: int
    at_s: float
    state: str
    rows: int
    size_bytes: int
    took_s: float | None
    timings_s: dict[str, float]
    error: str | None


class ChannelShown(msgspec.Struct, frozen=True):
    """A channel as it stands, with its last executions, the latest first."""

    name: str
    parameters: dict[str, str]
    every_s: float | None
    query: str
    subscriptions: int
    last: list[ExecutionShown]


class Channels(msgspec.Struct, frozen=True):
    """All channels."""

    channels: list[ChannelShown]


class Explained(msgspec.Struct, frozen=True):
    """How a channel is run: one statement for all subscriptions, and Spark's plan for it."""

    statement: str
    plan: str | None


CREATE_BROKER = Operation(
    "POST", "/createbroker", CreateBroker, BrokerCreated, "A broker has started.",
    is_idempotent=True, is_guarded=True,
)  # fmt: skip
SUBSCRIBE = Operation(
    "POST", "/subscribe", Subscribe, Subscribed,
    "A broker wants the results of channels for some arguments.",
    is_idempotent=True, is_guarded=True,
)  # fmt: skip
UNSUBSCRIBE = Operation(
    "POST", "/unsubscribe", Unsubscribe, Done, "A broker does not want them any more.",
    is_idempotent=True, is_guarded=True,
)  # fmt: skip
NOTICES = Operation(
    "POST", "/notices", NoticesAfter, Notices,
    "What has new results; waits for some if there are none yet.",
    is_idempotent=True, is_guarded=True,
)  # fmt: skip
PULL = Operation(
    "POST", "/pull", Pull, PullAnswer, "Results, from positions on.",
    is_idempotent=True, is_guarded=True,
)  # fmt: skip
CREATE_CHANNEL = Operation(
    "POST", "/createchannel", CreateChannel, Done, "A channel is made.", is_guarded=True
)
STATEMENT = Operation(
    "POST", "/statement", Statement, Done, "Something is made, or dropped.", is_guarded=True
)
RECORDS = Operation(
    "POST", "/records", Records, Taken, "Records arrive; the answer says that they are kept.",
    is_guarded=True, body_bytes_max=RECORDS_BYTES_MAX,
)  # fmt: skip
LOAD = Operation("POST", "/load", Load, Done, "A static dataset is loaded.", is_guarded=True)
DATASETS = Operation("GET", "/datasets", Nothing, Datasets, "All datasets.")
CHANNELS = Operation("GET", "/channels", Nothing, Channels, "All channels.")
CHANNEL = Operation("GET", "/channels/{name}", Named, ChannelShown, "One channel.")
EXPLAIN = Operation(
    "GET", "/channels/{name}/plan", Named, Explained, "How a channel is run.", is_guarded=True
)
