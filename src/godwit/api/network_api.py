"""HTTP operations for a network that is changed while it runs: of a broker, and of the coordinator.

    broker       GET  /network                         -> itself: state, links, load
                 GET  /clients                         -> the names of its clients
                 POST /order  {"authority", "command"} -> itself, afterwards
    coordinator  GET  /network                         -> all brokers, links, the present change
                 POST /network/changes  {"kind": "drain", "brokers": ["B3"]}  -> a change
                 GET  /network/changes, /network/changes/{number}
                 POST /network/abort                   -> the present change, taken back
                 POST /network/starts  {"brokers": ["B4"]}  -> those of them that should be started

Every order carries the *authority* of the coordinator that gives it: a fencing number that grows
when a coordinator takes over, the id of its state, and the number of its run.  A broker refuses an
order with a lower number than it has seen, one with the same number of another coordinator, and one
of an earlier run.  So a coordinator that was replaced, and does not know it, changes nothing,
however often it is restarted.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

import msgspec

from godwit.content.link_messages import ShapeSetting
from godwit.http.operations import Nothing, Operation
from godwit.migration.reshaping import ReshapingRecord
from godwit.protocol.frames import Name

Number = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
#: A figure that JSON cannot write, because it is infinite, is null.
Figure = float | None
PerSecond = Annotated[float, msgspec.Meta(gt=0, le=100_000)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
ShortLine = Annotated[str, msgspec.Meta(max_length=500)]

# -- brokers -----------------------------------------------------------------------------------


class Authority(msgspec.Struct, frozen=True):
    """Which coordinator orders: the fencing number, the id of its state, and its run."""

    number: Number
    coordinator: str
    run: Number = 1

    def yields_to(self, seen: Authority | None) -> bool:
        """Whether those who have seen another authority do not obey this one."""
        if seen is None or self.number != seen.number:
            return seen is not None and self.number < seen.number
        return self.coordinator != seen.coordinator or self.run < seen.run

    def __str__(self) -> str:
        return f"{self.number} (coordinator {self.coordinator}, run {self.run})"


class LinkView(msgspec.Struct, frozen=True, order=True):
    """A link of a broker, as this broker sees it."""

    neighbour: str
    status: str
    """up, away, expected, given up, pending."""

    bytes_per_s: float = 0.0
    """Sent over it in the last window of the meters."""

    kind: str = "primary"
    """primary, soft or cross."""


class ClusterAccount(msgspec.Struct, frozen=True, kw_only=True):
    """Of a broker in clusters: who is where, and what it has counted since that is so."""

    brokers: list[str]
    """All brokers in the order from which the clusters follow."""

    clusters: int
    finds_clusters: bool = False
    """The network file has `clusters = "auto"`: the coordinator may change the number."""

    published: int = 0
    """Publications of its clients."""

    reached: int = 0
    """Publications, of any broker, that a client of this one wanted."""

    sent: int = 0
    """Subscriptions that its mates were sent, and ..."""

    standing: int = 0
    """... that they have."""


class BrokerAccount(msgspec.Struct, frozen=True, kw_only=True):
    """What a broker says about itself."""

    broker: str
    start: str
    """The id of this run: another one after a restart."""

    pid: int
    started_s: float
    url: str
    http: str | None = None
    is_ready: bool = True
    """It has the tables of its neighbours, and is not recovering after a failure."""

    is_draining: bool = False
    because: str = ""
    """Why it is being drained."""

    is_supervised: bool = False
    """Whether something starts it again when it ends."""

    link_s: float = 10.0
    """Neighbours wait so long for it when it is restarted."""

    clients: int = 0
    clients_away: int = 0
    """Without a connection; their sessions can be resumed."""

    http_sessions: int = 0
    clients_max: int = 0
    links: list[LinkView] = []
    soft_links: list[LinkView] = []
    """Shortcuts of a mesh, which come and go."""

    awaited: list[str] = []
    """Neighbours that it waits for, of every epoch in use."""

    missing: list[str] = []
    """Brokers that are configured and not there, as far as this one can see."""

    publishers: int = 0
    """Of its clients, those that have published."""

    subscriptions: int = 0
    advertisements: int = 0
    """In its tables."""

    queue_bytes: int = 0
    """Waiting for peers, or for their acknowledgement."""

    deliveries: int = 0
    dropped: int = 0
    """Since it started."""

    publications_per_s: float = 0.0
    input_bytes_per_s: float = 0.0
    output_bytes_per_s: float = 0.0
    output_bandwidth_bytes_s: float = 0.0
    limits_output: bool = False
    """It sends no more than that."""

    load_window_s: float = 10.0
    """These figures are of the last complete window of this length."""

    input_utilisation: Figure = 0.0
    output_utilisation: Figure = 0.0
    matching_delay_s: Figure = 0.0
    epoch: int = 0
    """The shape of the network that it uses; 0 is that of the configured links."""

    clusters: ClusterAccount | None = None
    """None in another overlay."""

    authority: Authority | None = None
    """The highest one that it has seen."""


class ClientNames(msgspec.Struct, frozen=True):
    """The clients of a broker."""

    connected: list[str]
    away: list[str]


Command = Literal["obey", "drain", "undrain", "restart", "leave", "forget"]


class Order(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a coordinator orders a broker to do.

    obey     this coordinator is in charge, as at the beginning of a change
    drain    admit no new clients; undrain: admit them again
    restart  end without a goodbye, for a successor; nothing is lost if it is started again at once
    leave    say goodbye for good and end; refused while there are clients, or several links
    forget   the neighbour `broker` has left for good: do not call it any more
    """

    authority: Authority
    command: Command
    reason: ShortLine = ""
    start: str = ""
    """Of `restart` and `leave`: the run that is meant; a later run does nothing."""

    broker: str = ""


CLIENTS = Operation(
    "GET", "/clients", Nothing, ClientNames, "The names of the clients of this broker.",
    is_guarded=True,
)  # fmt: skip
ORDER = Operation(
    "POST", "/order", Order, BrokerAccount,
    "An order of a coordinator; refused with 409 if another coordinator is in charge.",
    is_idempotent=True, is_guarded=True,
)  # fmt: skip

# -- changes -----------------------------------------------------------------------------------


class ChangeKind(StrEnum):
    DRAIN = "drain"
    UNDRAIN = "undrain"
    JOIN = "join"
    LEAVE = "leave"
    RESTART = "restart"
    RESHAPE = "reshape"
    ALLOCATE = "allocate"
    """A plan of the allocator: brokers, tree, and who is where."""


class ChangeState(StrEnum):
    """`RUNNING` and `TAKING_BACK` change, the others are final."""

    PROPOSED = "proposed"
    """A dry run: nothing was ordered."""

    RUNNING = "running"
    TAKING_BACK = "being taken back"
    DONE = "done"
    INCOMPLETE = "incomplete"
    """Some clients could not be moved; the change says who, and why."""

    TAKEN_BACK = "taken back"
    FAILED = "failed"


class StepKind(StrEnum):
    DRAIN = "drain"
    UNDRAIN = "undrain"
    RESTART = "restart"
    RETURN = "return"
    """The clients that were moved away come back."""

    LEAVE = "leave"
    JOIN = "join"
    RESHAPE = "reshape"
    START = "start"
    """A broker that does not run is started by what supervises it."""

    MOVE = "move"
    """Clients move where the plan has them."""


class StepState(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    INCOMPLETE = "incomplete"
    STOPPED = "stopped"


class ChangeStep(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a change, at one broker.  Each can be repeated."""

    kind: StepKind
    broker: str
    state: StepState = StepState.WAITING
    began_s: float | None = None
    ended_s: float | None = None
    start: str = ""
    """The run of the broker that is to be restarted or stopped."""

    clients: int = 0
    """That should move."""

    moved: int = 0
    went: dict[str, str] = {}
    """The broker that each moved client went to; emptied when the change is over."""

    stayed: dict[str, str] = {}
    """Clients that did not move, with reasons."""

    members: list[str] = []
    """Of `reshape`: the brokers of the new tree, if they are not those of the request, and ..."""

    links: list[tuple[str, str]] = []
    """... their links, and ..."""

    overlay: str = ""
    settings: dict[str, ShapeSetting] = {}
    """... their overlay, if it is not a tree."""

    reshaping: ReshapingRecord | None = None
    """How far a change of the shape is."""

    says: str = ""


class BrokerLoad(msgspec.Struct, frozen=True, kw_only=True):
    """The load of a broker before or after a change."""

    clients: int
    output_bytes_per_s: float = 0.0


class ChangeRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A change of the network.  One at a time."""

    kind: ChangeKind
    brokers: Annotated[list[Name], msgspec.Meta(min_length=1, max_length=10_000)]
    to: list[Name] = []
    """Brokers that may take the clients; by default all that have room."""

    link: Name | None = None
    """Of `join`: the neighbour that the new broker links to.  Of `allocate`: the root of the tree,
    to which brokers that it does not need are linked until they leave."""

    links: list[tuple[Name, Name]] = []
    """Of `reshape`: the links of the new tree, of all brokers.  Of `allocate`: of those that it
    needs, which are `brokers`."""

    overlay: ShortLine = ""
    """Of `reshape`: the overlay from then on, if it is to be another one."""

    settings: dict[ShortLine, ShapeSetting] = {}
    """Of that overlay: `brokers` in their order and `clusters`, or those of a mesh."""

    clients: dict[Name, Name] = {}
    """Of `allocate`: the broker of each client; others stay, unless their broker leaves."""

    outputs: dict[Name, float] = {}
    """Of `allocate`: the bytes per second that each broker is expected to send."""

    keeps: bool = False
    """Of `allocate`: brokers that are not needed run on, drained, without work."""

    per_s: PerSecond | None = None
    """Clients that are asked to move per second; by default the coordinator's `moves_per_s`."""

    within_s: Seconds = 60.0
    """How long a broker may not answer, or not be back, before the change fails."""

    give_up_s: Seconds = 15.0
    """How long no client has moved before those that are left are given up."""

    drains: bool = True
    """Of `restart`: move the clients away before, and ..."""

    returns: bool = True
    """... back after it."""

    dry_run: bool = False
    reason: ShortLine = ""
    asked_by: ShortLine = ""
    take_over: bool = False
    """Brokers obey another coordinator: this one is in charge from now on."""


class NetworkChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change: what was asked, how far it is, and what came of it."""

    number: int
    request: ChangeRequest
    state: ChangeState
    authority: Authority
    asked_s: float
    ended_s: float | None = None
    because: str = ""
    """Why it failed, is incomplete, or was taken back."""

    steps: list[ChangeStep] = []
    before: dict[str, BrokerLoad] = {}
    expected: dict[str, BrokerLoad] = {}
    """If every client moves as planned; loads are estimates, in proportion to clients."""

    after: dict[str, BrokerLoad] = {}
    """Measured."""

    @property
    def is_over(self) -> bool:
        return self.state not in (ChangeState.RUNNING, ChangeState.TAKING_BACK)


class NetworkBroker(msgspec.Struct, frozen=True, kw_only=True):
    """A broker of the network."""

    broker: str
    state: str
    """serving, draining, joining, not ready, silent."""

    account: BrokerAccount | None = None
    """None if it has not said anything yet."""

    age_s: float | None = None
    """Of the account."""


class NetworkLink(msgspec.Struct, frozen=True, order=True):
    """A link between two brokers; where its ends differ, the status that is further from up."""

    one: str
    other: str
    status: str


class NetworkView(msgspec.Struct, frozen=True, kw_only=True):
    """The brokers and links of the network, and the change that is under way."""

    brokers: list[NetworkBroker]
    links: list[NetworkLink]
    missing: list[str] = []
    change: NetworkChange | None = None
    authority: Authority | None = None
    """Of the coordinator that answers."""

    autoscale: str = ""
    """What it has decided last by itself; empty if it does not."""

    clusters: str = ""
    """The same about the number of clusters, if it chooses that."""


class WhichChanges(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 20


class AbortRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """With `dry_run` the present change is the answer, or why it is too late."""

    dry_run: bool = False


class WhichChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    number: Annotated[int, msgspec.Meta(ge=1)]


class Startable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Brokers that have left, and that the caller can start again."""

    brokers: Annotated[list[Name], msgspec.Meta(max_length=10_000)]


class ToStart(msgspec.Struct, frozen=True):
    """Those of them that are needed now."""

    brokers: list[str]


class ChangeList(msgspec.Struct, frozen=True):
    """Changes, the latest first."""

    changes: list[NetworkChange]


NETWORK = Operation(
    "GET", "/network", Nothing, NetworkView,
    "Brokers and links: of a coordinator all of them, of a broker itself.",
)  # fmt: skip
BEGIN_CHANGE = Operation(
    "POST", "/network/changes", ChangeRequest, NetworkChange,
    "Begin a change of the network, or say what it would do (dry_run).",
    is_guarded=True,
)  # fmt: skip
CHANGES = Operation(
    "GET", "/network/changes", WhichChanges, ChangeList, "Changes of the network, the latest first."
)
CHANGE = Operation(
    "GET", "/network/changes/{number}", WhichChange, NetworkChange, "One change, with its steps."
)
STARTS = Operation(
    "POST", "/network/starts", Startable, ToStart,
    "A supervisor says which brokers it can start again, and is told which it should.",
    is_idempotent=True, is_guarded=True,
)  # fmt: skip
ABORT_CHANGE = Operation(
    "POST", "/network/abort", AbortRequest, NetworkChange,
    "Take the present change back, as far as that is possible.",
    is_guarded=True,
)  # fmt: skip
