"""Everything a broker can ask its driver to do: the output of its state machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, final

import msgspec
from msgspec.structs import replace

from godwit.broker.stimuli import LinkKind, LocalClient, NameContest, Neighbour
from godwit.content.messages import GapNotice, Message, Notice, Publication

# `gc=False` where one is made for every message: it cannot be part of a cycle.


@final
class Send(msgspec.Struct, frozen=True, gc=False):
    """Put `message` into the output queue of a neighbour."""

    to: Neighbour
    message: Message
    hops: int = 0
    """Overlay links the message will have crossed when it arrives."""


@final
class Deliver(msgspec.Struct, frozen=True, gc=False):
    """Put a publication into the output queues of some local subscribers."""

    to: tuple[LocalClient, ...]
    publication: Publication
    hops: int
    """Overlay links between the publisher's broker and this one."""


@final
class Notify(msgspec.Struct, frozen=True):
    """Answer a client: a request is in effect, or was refused."""

    to: LocalClient
    notice: Notice


@final
class NotifyAll(msgspec.Struct, frozen=True):
    """Tell every client of this broker of a gap."""

    notice: GapNotice
    lost_by: Mapping[str, int]
    """Publications that were lost, by publisher: each client is told of its own."""

    def notice_for(self, client: str) -> GapNotice:
        own_lost = self.lost_by.get(client, 0)
        return replace(self.notice, own_lost=own_lost) if own_lost else self.notice


@final
class Submit(msgspec.Struct, frozen=True):
    """Put a module's message into this broker's own input queue, as if it had arrived."""

    module: str
    message: Message


@final
class SetTimer(msgspec.Struct, frozen=True):
    """Send `TimerFired(module, name)` at `at_s`."""

    module: str
    name: str
    at_s: float
    """On the clock that the driver passes to `Broker.handle`."""


@final
class Ping(msgspec.Struct, frozen=True):
    """Let a client measure its round-trip times to some brokers; `Pinged` has the answer."""

    module: str
    client: str
    brokers: tuple[tuple[str, str], ...]
    """Names and addresses."""


@final
class Decision(msgspec.Struct, frozen=True):
    """A decision of a policy, with the numbers behind it."""

    action: str
    subject: str
    """The client that is, or would be, moved."""

    source: str
    target: str
    reason: Mapping[str, float | str]


@final
class Report(msgspec.Struct, frozen=True):
    """Record a decision in log, trace and metrics."""

    policy: str
    decision: Decision


@final
class OpenLink(msgspec.Struct, frozen=True):
    """Open a link to another broker; `LinkUp` comes on both sides when it is up."""

    broker: str
    address: str
    """Where the broker listens; empty in a simulation."""

    kind: LinkKind
    lane: int = 0
    is_caller: bool = True
    """False if the other end dials."""

    only_asks: bool = False
    """Only find out whether the epoch of the link is over at the other end, which dials."""


@final
class CloseLink(msgspec.Struct, frozen=True):
    """Close a link; `LinkDown` comes on both sides."""

    neighbour: Neighbour
    is_down: bool = False
    """The link is down already, and should not be made again from here."""


@final
class EpochFlipped(msgspec.Struct, frozen=True):
    """Publications of clients go to the next epoch from now on.

    Those of a client with unacknowledged ones wait for that: if this broker fails, the client sends
    them again, in the next epoch, and no later one must have been there before them.
    """


@final
class DropLane(msgspec.Struct, frozen=True):
    """Close the links of this lane when all that was sent on them is acknowledged.

    Its epoch is over.  What was held that came on the lane of the other epoch is handled now.
    """

    lane: int


@final
class NameGranted(msgspec.Struct, frozen=True):
    """A client that waits for its name may have its session."""

    client: LocalClient
    incarnation: str
    generation: int


@final
class NameLost(msgspec.Struct, frozen=True):
    """Refuse a client that waits for its name, or end its session: another client has it."""

    client: LocalClient
    incarnation: str
    reason: str
    is_final: bool = True
    """False if another attempt may succeed before long."""


@final
class NameContested(msgspec.Struct, frozen=True):
    """Decide whether a session of this broker keeps its name; `NameDecided` is the answer."""

    client: LocalClient
    contest: NameContest


#: What a router asks of the driver about the names of clients.
NameEffect: TypeAlias = NameGranted | NameLost | NameContested
#: What a router asks of the driver besides sending messages.
LinkEffect: TypeAlias = OpenLink | CloseLink | DropLane
#: What a broker asks for on behalf of its modules.
ModuleEffect: TypeAlias = Submit | SetTimer | Ping | Report
#: What a driver does by itself, without a queue.
DriverEffect: TypeAlias = LinkEffect | EpochFlipped | NameEffect | ModuleEffect
Effect: TypeAlias = Send | Deliver | Notify | NotifyAll | DriverEffect
