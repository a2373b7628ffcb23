"""Everything a broker can ask its driver to do.  A broker does none of it itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, final

import msgspec

from godwit.broker.stimuli import Client, Neighbour
from godwit.content.messages import Message, Notice, Publication


@final
class Send(msgspec.Struct, frozen=True):
    """Put `message` into the output queue of a neighbour."""

    to: Neighbour
    message: Message
    hops: int = 0
    """Overlay links the message will have crossed when it arrives."""


@final
class Deliver(msgspec.Struct, frozen=True):
    """Put a publication into the output queue of each of some subscribers."""

    to: tuple[Client, ...]
    publication: Publication
    hops: int
    """Overlay links between the publisher's broker and this one."""


@final
class Notify(msgspec.Struct, frozen=True):
    """Answer a client: something is in effect now, or was refused."""

    to: Client
    notice: Notice


@final
class Submit(msgspec.Struct, frozen=True):
    """Put a module's message into this broker's own input queue, as if it had arrived."""

    module: str
    message: Message


@final
class SetTimer(msgspec.Struct, frozen=True):
    """Hand `TimerFired(module, name)` back when the time has come."""

    module: str
    name: str
    at_s: float
    """On the driver's own clock, the one it passes to `Broker.handle`."""


@final
class Ping(msgspec.Struct, frozen=True):
    """Let a client find out how far it is from some brokers; hand `Pinged` back with the answer."""

    module: str
    client: str
    brokers: tuple[tuple[str, str], ...]
    """Names and addresses."""


@final
class Decision(msgspec.Struct, frozen=True):
    """What a policy decided, and the numbers that decided."""

    action: str
    subject: str
    """Who is, or would be, moved."""

    source: str
    target: str
    reason: Mapping[str, float | str]


@final
class Report(msgspec.Struct, frozen=True):
    """Write down a decision where people will find it: log, trace, metrics."""

    policy: str
    decision: Decision


#: What a broker asks for on behalf of its modules.
ModuleEffect: TypeAlias = Submit | SetTimer | Ping | Report
Effect: TypeAlias = Send | Deliver | Notify | ModuleEffect
