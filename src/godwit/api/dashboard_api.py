"""HTTP operations of the dashboard, which its page calls, and other programs may.

    GET  /api/overview                       -> brokers, links, totals, balance, the present change
    GET  /api/history?broker=B1              -> the same figures over the last minutes
    GET  /api/activity                       -> moves, decisions of policies, changes
    GET  /api/channels                       -> datasets, channels, executions
    GET  /api/filters?contains=...           -> subscriptions of all brokers, with their filters
    POST /api/matches  {"record"}            -> whose subscriptions match it; what fails in others
    POST /api/actions  {"kind": "drain", ..} -> what was done; with dry_run, what would be done
    POST /api/why      {"record", "to"}      -> the story of a publication
    GET  /api/client?name=tom                -> the story of a client
    GET  /api/lab                            -> experiments, claims
    POST /api/replay   {"is_playing": true}  -> only of a recorded trace: plays it

Two streams of server-sent events stand beside them: GET /api/stream, which sends the overview, and
what has changed of the others; and GET /api/tail?filter=..., publications that match a filter,
sampled.  All of it is allowed from this machine only, or with the network's secret.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from godwit.api.coordinator_api import MoveRecord
from godwit.api.datacluster_api import ChannelView, DatasetView
from godwit.api.network_api import Figure, NetworkChange
from godwit.api.routing_api import ClientAccount, HopAccount, PolicyDecision, TableEntryView
from godwit.broker.explaining import FilterFinding
from godwit.content.values import CheckedValue
from godwit.content.wired import ShortText
from godwit.http.operations import Nothing, Operation
from godwit.protocol.frames import Name

#: Default address.
LISTEN = "127.0.0.1:7680"
#: In the place of an address: there is none.
OFF = "off"
#: A plan of the allocator for 100,000 clients fits.
ACTION_BYTES_MAX = 16 * 1024 * 1024

# -- what is shown -----------------------------------------------------------------------------


class BrokerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A broker, in one row."""

    broker: str
    state: str
    """serving, draining, joining, not ready, silent."""

    because: str = ""
    load: float = 0.0
    """The higher one of its input and output utilisation."""

    input_utilisation: Figure = 0.0
    output_utilisation: Figure = 0.0
    matching_delay_s: Figure = 0.0
    publications_per_s: float = 0.0
    input_bytes_per_s: float = 0.0
    output_bytes_per_s: float = 0.0
    clients: int = 0
    clients_away: int = 0
    publishers: int = 0
    subscriptions: int = 0
    advertisements: int = 0
    queue_bytes: int = 0
    deliveries: int = 0
    dropped: int = 0
    epoch: int = 0
    url: str = ""
    http: str = ""
    role: str = ""
    """In load balancing: edge or head."""

    balancing: str = ""
    """Its status: OK, N/A, STABILIZING or BUSY."""


class LinkRow(msgspec.Struct, frozen=True, kw_only=True):
    one: str
    other: str
    status: str
    bytes_per_s: float = 0.0
    """In both directions."""

    kind: str = "primary"
    """primary, soft or cross: the kinds of links that overlays use."""


class NetworkTotals(msgspec.Struct, frozen=True, kw_only=True):
    brokers: int = 0
    serving: int = 0
    clients: int = 0
    publishers: int = 0
    publications_per_s: float = 0.0
    """Taken from publishers and neighbours, by all brokers together."""

    deliveries_per_s: float = 0.0
    output_bytes_per_s: float = 0.0
    queue_bytes: int = 0
    dropped: int = 0


class NetworkBalance(msgspec.Struct, frozen=True, kw_only=True):
    """How even the loads of the brokers that serve are."""

    mean: float = 0.0
    maximum: float = 0.0
    cov: float = 0.0
    """Standard deviation over mean."""

    lower_bound: float | None = None
    """What no assignment of subscribers has a smaller maximum than, if brokers balance."""

    is_balancing: bool = False
    is_paused: bool = False
    is_dry_run: bool = False
    sessions: int = 0
    obstacles: list[str] = []


class ReplayState(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded trace that is played."""

    trace: str
    start_s: float
    end_s: float
    at_s: float
    """The moment that is shown."""

    speed: float
    """Seconds of the trace per second."""

    is_playing: bool = False


class SharingCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Of the subscriptions to channels, as the coordinator knows them."""

    front_end: int
    """Of clients."""

    back_end: int
    """Of the data cluster: those of the same channel with the same arguments are one."""


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The network now, or at the moment of a replay."""

    at_s: float
    totals: NetworkTotals
    balance: NetworkBalance
    brokers: list[BrokerRow]
    left_out: int = 0
    """Brokers beyond those that are shown, which are the most loaded, and those with trouble."""

    links: list[LinkRow]
    missing: list[str] = []
    change: NetworkChange | None = None
    has_coordinator: bool = False
    has_datacluster: bool = False
    troubles: list[str] = []
    """Servers that do not answer."""

    sharing: SharingCounts | None = None
    replay: ReplayState | None = None
    """Set if this is a recorded trace."""


class BrokerActivity(msgspec.Struct, frozen=True, kw_only=True):
    """A decision of a policy of a broker."""

    broker: str
    decision: PolicyDecision


class Activity(msgspec.Struct, frozen=True, kw_only=True):
    """What has been decided and done, the latest first."""

    decisions: list[BrokerActivity]
    moves: list[MoveRecord]
    changes: list[NetworkChange]
    says: str = ""
    """The result of the coordinator's last look at the loads."""


class ChannelsView(msgspec.Struct, frozen=True, kw_only=True):
    datasets: list[DatasetView]
    channels: list[ChannelView]
    trouble: str = ""


class WhichHistory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    broker: ShortText = ""
    """"": of the network."""


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Figures by name; all have the length of `at_s`.  Recorded while a page is open."""

    at_s: list[float]
    figures: dict[str, list[Figure]]


OVERVIEW = Operation("GET", "/api/overview", Nothing, Overview, "The network now.", is_guarded=True)
HISTORY = Operation(
    "GET", "/api/history", WhichHistory, History, "Figures of the last minutes.", is_guarded=True
)
ACTIVITY = Operation(
    "GET", "/api/activity", Nothing, Activity, "Moves, decisions and changes, the latest first.",
    is_guarded=True,
)  # fmt: skip
CHANNELS_VIEW = Operation(
    "GET", "/api/channels", Nothing, ChannelsView, "Datasets, channels and their executions.",
    is_guarded=True,
)  # fmt: skip

# -- filters -----------------------------------------------------------------------------------


class WhichFilters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    contains: ShortText = ""
    """Only those whose id or filter has this text."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 200


class FilterRow(msgspec.Struct, frozen=True, kw_only=True):
    broker: str
    subscription: TableEntryView
    covered_by: str = ""
    """The id of the narrowest other one in this list that has all its publications, if there is
    one: so the list is a forest, of the covering poset."""


class FilterList(msgspec.Struct, frozen=True, kw_only=True):
    subscriptions: list[FilterRow]
    advertisements: list[FilterRow]
    found: int
    silent: list[str] = []
    """Brokers that did not answer."""


class MatchQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    record: Annotated[str, msgspec.Meta(max_length=20_000)]
    """JSON, or [attribute,value],..."""


class MatchedClient(msgspec.Struct, frozen=True, kw_only=True):
    broker: str
    finding: FilterFinding


class MatchAnswer(msgspec.Struct, frozen=True, kw_only=True):
    record: dict[str, CheckedValue]
    matching: list[MatchedClient]
    """The first ones."""

    count: int = 0
    """Subscriptions that match."""

    others: list[MatchedClient]
    """Subscriptions that do not match; those with the fewest failures first."""

    looked_at: int
    found: int = 0
    """Subscriptions that there are; the page says so if not all were looked at."""

    silent: list[str] = []


FILTERS = Operation(
    "GET", "/api/filters", WhichFilters, FilterList, "Subscriptions of all brokers.",
    is_guarded=True,
)  # fmt: skip
MATCHES = Operation(
    "POST", "/api/matches", MatchQuestion, MatchAnswer,
    "Whose subscriptions match a record, and what fails in the others.",
    is_idempotent=True, is_guarded=True,
)  # fmt: skip

# -- actions -----------------------------------------------------------------------------------


class ActionKind(StrEnum):
    DRAIN = "drain"
    UNDRAIN = "undrain"
    MOVE = "move"
    REJECT = "reject"
    """A move that a dry run of the coordinator has proposed."""

    PAUSE = "pause"
    RESUME = "resume"
    ABORT = "abort"
    """Takes the present change of the network back."""

    APPLY = "apply"
    """A plan of `godwit croc plan --json`."""


class ActionRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    kind: ActionKind
    broker: Name | None = None
    """Of drain, undrain and move: where the clients are."""

    to: Name | None = None
    """Of move, and of drain without a coordinator: the broker that takes them."""

    clients: Annotated[list[Name], msgspec.Meta(max_length=1_000)] = []
    count: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0
    """Of move: so many clients, instead of names."""

    move: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0
    """Of reject: its number."""

    plan: Annotated[str, msgspec.Meta(max_length=ACTION_BYTES_MAX)] = ""
    reason: Annotated[str, msgspec.Meta(max_length=500)] = ""
    dry_run: bool = False
    """Say what would be done, and do nothing."""


class ActionAccount(msgspec.Struct, frozen=True, kw_only=True):
    is_done: bool
    """False: it was a dry run, or goes on, or did not succeed."""

    says: list[str]
    change: int | None = None
    """The number of the coordinator's change that carries it out."""


ACT = Operation(
    "POST", "/api/actions", ActionRequest, ActionAccount,
    "Drain, undrain, move, reject, pause, resume, abort or apply; answers with an account of it.",
    is_guarded=True, body_bytes_max=ACTION_BYTES_MAX + 65_536,
)  # fmt: skip

# -- why ---------------------------------------------------------------------------------------


class WhyQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    record: Annotated[str, msgspec.Meta(max_length=20_000)]
    """JSON, or [attribute,value],..."""

    publisher: ShortText = ""
    """The client that publishes it; without it, the broker below."""

    broker: ShortText = ""
    """Where it is published; by default where the publisher is."""

    to: ShortText = ""
    """The subscriber; without it, everyone who would get it."""


class EndReason(StrEnum):
    """Why a subscriber gets a publication, or does not."""

    DELIVERED = "delivered"
    UNKNOWN_SUBSCRIBER = "unknown subscriber"
    UNKNOWN_PUBLISHER = "unknown publisher"
    NOT_SUBSCRIBED = "not subscribed"
    FILTER_FAILS = "filter fails"
    NOT_ADVERTISED = "not advertised"
    NOT_ADVERTISED_YET = "advertisement not in effect"
    OWN_PUBLICATION = "own publication"
    """A client does not get what it publishes itself."""

    NOT_IN_EFFECT = "subscription not in effect"
    NOT_FORWARDED = "not forwarded"
    LINK_DOWN = "link down"
    BROKER_SILENT = "broker silent"
    CLIENT_AWAY = "client away"
    """It is put into the queue of the client, which has no connection."""


class StoryHop(msgspec.Struct, frozen=True, kw_only=True):
    """The publication at one broker."""

    came_from: str
    account: HopAccount


class PublicationStory(msgspec.Struct, frozen=True, kw_only=True):
    record: dict[str, CheckedValue]
    publisher: str
    publisher_broker: str
    hops: list[StoryHop]
    """Brokers in the order in which they would get it."""

    delivered_to: dict[str, str]
    """Clients that would get it, and their brokers."""

    to: str = ""
    to_broker: str = ""
    reason: EndReason | None = None
    """Why `to` gets it, or does not."""

    ends_at: str = ""
    """The broker where the way to it ends."""

    says: list[str]
    """The story in sentences."""

    silent: list[str] = []


WHY = Operation(
    "POST", "/api/why", WhyQuestion, PublicationStory,
    "The way of a publication from broker to broker, and why it reaches a subscriber or not.",
    is_idempotent=True, is_guarded=True,
)  # fmt: skip

# -- the story of a client ---------------------------------------------------------------------


class WhichClient(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: ShortText


class ClientEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided about a client, or done with it."""

    at_s: float
    by: str
    """The coordinator, or the policy of a broker."""

    says: str


class ClientStory(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    places: list[ClientAccount]
    """What brokers that have it as a client know of it; while it moves there are two."""

    events: list[ClientEvent]
    """As far back as brokers and the coordinator remember, the latest first."""

    says: list[str]
    silent: list[str] = []


CLIENT_STORY = Operation(
    "GET", "/api/client", WhichClient, ClientStory,
    "Where a client is, what it holds, what it has lost, and who moved it when and why.",
    is_guarded=True,
)  # fmt: skip

# -- a recorded trace --------------------------------------------------------------------------

Moment = Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]


class ReplayRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is not given stays as it is."""

    at_s: Moment | None = None
    speed: Annotated[float, msgspec.Meta(ge=0.01, le=100_000)] | None = None
    is_playing: bool | None = None
    """Playing at the end begins again."""


REPLAY = Operation(
    "POST", "/api/replay", ReplayRequest, ReplayState,
    "Play or stop a recorded trace, or go to a moment of it.", is_guarded=True,
)  # fmt: skip

# -- the lab -----------------------------------------------------------------------------------


class ClaimView(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    statement: str
    source: str
    verdict: str = ""
    measured: float | None = None


class ExperimentView(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    title: str
    question: str
    scale: str = ""
    """The scale whose results are shown; empty if there are none on this machine."""

    runs: int = 0
    claims: list[ClaimView]


class LabView(msgspec.Struct, frozen=True, kw_only=True):
    experiments: list[ExperimentView]
    trouble: str = ""


LAB = Operation(
    "GET", "/api/lab", Nothing, LabView, "Experiments, and verdicts on their claims.",
    is_guarded=True,
)  # fmt: skip
