"""Everything that can happen to a broker."""

from __future__ import annotations

from typing import TypeAlias, final

import msgspec

from godwit.content.messages import Message


@final
class Neighbour(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """A broker one overlay link away."""

    name: str


@final
class Client(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """A publisher or subscriber attached to this broker."""

    name: str


@final
class Module(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """A policy module inside this broker; to the router it is one more client."""

    name: str


Hop: TypeAlias = Neighbour | Client | Module


@final
class Started(msgspec.Struct, frozen=True):
    """The driver is ready to perform effects.  Comes once, before anything else."""


@final
class Received(msgspec.Struct, frozen=True):
    """A message arrived; `last_hop` is whoever handed it to us."""

    message: Message
    last_hop: Hop
    hops: int = 0
    """Overlay links the message has crossed so far."""


@final
class TimerFired(msgspec.Struct, frozen=True):
    """A timer this broker asked for has come due."""

    module: str
    name: str


@final
class LinkUp(msgspec.Struct, frozen=True):
    """A link to a neighbour that knows nothing of us is ready; so do we of it."""

    neighbour: Neighbour


@final
class LinkDown(msgspec.Struct, frozen=True):
    """A link is gone for good, with what was on it; the neighbour forgets us as we forget it."""

    neighbour: Neighbour


@final
class LinkRestarted(msgspec.Struct, frozen=True):
    """A neighbour is back after a failure and knows nothing; we know what it had told us before."""

    neighbour: Neighbour


@final
class Recovering(msgspec.Struct, frozen=True):
    """The broker is itself back after a failure; its clients are still to come."""


@final
class ClientsReturned(msgspec.Struct, frozen=True):
    """Clients that wanted to come back after a failure of this broker had time to."""


@final
class Recovered(msgspec.Struct, frozen=True):
    """The broker knows again what it has to know."""


@final
class ClientLeft(msgspec.Struct, frozen=True):
    """A client ended its session, or let it expire: whatever it held is withdrawn."""

    client: Client


@final
class Pinged(msgspec.Struct, frozen=True):
    """A client was asked how far it is from some brokers, and this is what it found."""

    module: str
    client: str
    round_trips_s: dict[str, float]
    """By broker; those that did not answer are missing."""


Stimulus: TypeAlias = (
    Received
    | TimerFired
    | Started
    | LinkUp
    | LinkDown
    | LinkRestarted
    | Recovering
    | ClientsReturned
    | Recovered
    | ClientLeft
    | Pinged
)
