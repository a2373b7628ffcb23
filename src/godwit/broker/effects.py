"""Everything a broker can ask its driver to do.  A broker does none of it itself."""

from __future__ import annotations

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


Effect: TypeAlias = Send | Deliver | Notify | Submit | SetTimer
