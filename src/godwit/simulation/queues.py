"""What waits in the queues of a simulated broker, and leaves it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from godwit.broker.effects import Deliver, Notify, Send
from godwit.broker.stimuli import (
    Acknowledged,
    ClientArrived,
    ClientLeft,
    EpochStimulus,
    LinkDown,
    LinkUp,
    Neighbour,
    OperatorCommand,
    Pinged,
    Received,
    TimerFired,
)
from godwit.content.messages import Message, Notice, Publication, size_bytes
from godwit.simulation.wires import Wire

#: What keeps its place behind messages, and takes the engine no time.
InOrder: TypeAlias = ClientLeft | ClientArrived | LinkUp | LinkDown | EpochStimulus
#: What a module waits for: behind the message in the engine, before all others.
Aside: TypeAlias = TimerFired | Pinged | OperatorCommand | Acknowledged
#: What waits for the engine, with its size in bytes and its time of arrival.
Incoming: TypeAlias = tuple[Received | InOrder | Aside, int, float]
#: What leaves by the output.
Outgoing: TypeAlias = Send | Deliver | Notify
#: What waits for the output, with its size in bytes, that of a single copy of its publication, and
#: when it could have left.
Waiting: TypeAlias = tuple[Outgoing, int, int, float]
#: One event for each copy would be exact, and slow where copies take microseconds.
COPIES_TOGETHER_S = 0.001


@dataclass(frozen=True, slots=True)
class NeighbourPort:
    wire: Wire
    arrive: Callable[[Received, float], None]
    close: Callable[[LinkDown], None]
    """Tells the other end that the link is closed."""

    hop: Neighbour
    """This broker, as the other end knows it."""

    acknowledge: Callable[[Acknowledged], None]
    """Tells the other end what has arrived here (simulated_paths.py)."""


def in_groups(
    deliver: Deliver, start_s: float, departs_s: float
) -> Iterator[tuple[Deliver, float]]:
    """Copies that arrive together, and when they leave; the last ones leave at `departs_s`."""
    to, count, busy_s = deliver.to, len(deliver.to), departs_s - start_s
    publication, hops = deliver.publication, deliver.hops
    together = max(1, int(COPIES_TOGETHER_S / busy_s * count))
    for last in range(together, count, together):
        some = Deliver(to[last - together : last], publication, hops)
        yield some, start_s + busy_s * last / count
    yield Deliver(to[(count - 1) // together * together :], publication, hops), departs_s


def outgoing_bytes(effect: Outgoing, publication_bytes: int) -> int:
    """The size of all copies; a publication has `publication_bytes`."""
    if isinstance(effect, Deliver):
        return publication_bytes * len(effect.to)
    message = carried(effect)
    return publication_bytes if isinstance(message, Publication) else size_bytes(message)


def carried(effect: Outgoing | Received) -> Message | Notice:
    if isinstance(effect, Send | Received):
        return effect.message
    return effect.publication if isinstance(effect, Deliver) else effect.notice
