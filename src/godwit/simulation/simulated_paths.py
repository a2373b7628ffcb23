"""Acknowledgements between simulated brokers, and what waits for them.

Only for routers with several paths (`broker.routing.Multipath`), and on the links of epochs that
have them: there the next publication of a
publisher may have to wait until the one before it has arrived (overlay/mesh/forwarding.py).  The
rules are those of production (broker/pending_acks.py).  An acknowledgement takes the time of its
link, and no bandwidth; a client acknowledges at once.

What has to wait, and whatever follows it from the same hop, is held before the matching engine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

from godwit.broker.effects import Effect, Send
from godwit.broker.pending_acks import PendingAcks, Settled
from godwit.broker.routing import Multipath
from godwit.broker.stimuli import Acknowledged, Hop, Neighbour, Received
from godwit.content.messages import Message, Publication, Sweep
from godwit.simulation.agenda import Agenda
from godwit.simulation.queues import NeighbourPort


class SimulatedPaths:
    __slots__ = (
        "_acks", "_agenda", "_held", "_neighbours", "_paths", "_put", "_received", "_release",
        "_released", "_said", "_stimulate", "held_in_all",
    )  # fmt: skip

    def __init__(
        self,
        paths: Multipath,
        agenda: Agenda,
        neighbours: Mapping[Neighbour, NeighbourPort],
        *,
        release: Callable[[Received], None],
        stimulate: Callable[[Acknowledged], None],
    ) -> None:
        """`release` gives a message that was held to the engine; `stimulate` the broker."""
        self._paths = paths
        self._agenda = agenda
        self._neighbours = neighbours
        self._release = release
        self._stimulate = stimulate
        self._acks: PendingAcks[Hop] = PendingAcks()
        self._received: dict[Neighbour, int] = {}
        """Messages that count, by the neighbour that they came from."""
        self._put: dict[Neighbour, int] = {}
        """The same, by the neighbour that they were sent to."""
        self._said: dict[Hop, int] = {}
        """How many were acknowledged."""
        self._held: dict[Hop, deque[Received]] = {}
        """What waits, by hop."""
        self._released: set[Hop] = set()
        """Hops whose first waiting message is on its way to the engine again."""
        self.held_in_all = 0
        """Messages that had to wait, since the start."""

    @property
    def is_idle(self) -> bool:
        return not self._held

    # -- what waits ----------------------------------------------------------------------------

    def takes(self, received: Received, now_s: float) -> bool:
        """Keep a message that has to wait, in front of the engine; False if it has not."""
        hop, message = received.last_hop, received.message
        held = self._held.get(hop)
        if held is not None and (not held or held[0] is not received):
            held.append(received)
            return True
        self._released.discard(hop)
        if type(message) is Publication and self._paths.has_to_wait(message, hop, now_s):
            if held is None:
                self._held[hop] = deque((received,))
                self.held_in_all += 1
            return True
        if held is not None:
            held.popleft()  # The next one may follow.
            if held:
                self._let_go(held[0])
            else:
                del self._held[hop]
        return False

    def _let_go(self, received: Received) -> None:
        self._released.add(received.last_hop)
        self._release(received)

    def retry(self) -> None:
        """Let go what need not wait any more."""
        now_s = self._agenda.now_s
        for hop, held in list(self._held.items()):
            first = held[0]
            message = first.message
            if hop in self._released or type(message) is not Publication:
                continue
            if not self._paths.has_to_wait(message, hop, now_s):
                self._let_go(first)

    # -- what is acknowledged ------------------------------------------------------------------

    def performed(self, effects: Sequence[Effect], received: Received | None = None) -> None:
        """These effects leave, caused by a message or not."""
        positions: dict[Hop, int] = {}
        for effect in effects:
            if type(effect) is Send and self._counts(effect.message, effect.to):
                to = effect.to
                positions[to] = self._put[to] = self._put.get(to, 0) + 1
        if received is not None and type(received.last_hop) is Neighbour:
            self.handled(received, positions)

    def handled(self, received: Received, positions: dict[Hop, int]) -> None:
        """A message was handled, or dropped; copies of it are at these positions."""
        source = received.last_hop
        if not isinstance(source, Neighbour) or not self._counts(received.message, source):
            return
        for hop in (source, *positions):
            if hop not in self._said:
                self._said[hop] = 0
                self._acks.open(hop)
        count = self._received[source] = self._received.get(source, 0) + 1
        self._acknowledge((self._acks.handled(source, count, 0, positions),))

    def _acknowledge(self, settled: Iterable[Settled[Hop]]) -> None:
        for source, received, _awaits, _bytes in settled:
            assert isinstance(source, Neighbour), "clients and modules are not acknowledged"
            port = self._neighbours.get(source)
            if received > self._said[source] and port is not None:
                self._said[source] = received
                arrival_s = port.wire.arrival_s(self._agenda.now_s)
                self._agenda.plan(arrival_s, port.acknowledge, Acknowledged(port.hop, received))

    def on_acknowledged(self, acknowledged: Acknowledged) -> None:
        neighbour, position = acknowledged.neighbour, acknowledged.position
        if neighbour not in self._neighbours:
            return  # The link was closed meanwhile.
        if neighbour in self._said:
            self._acknowledge(self._acks.acknowledged(neighbour, position))
        self._stimulate(acknowledged)
        if self._held:
            self.retry()

    def close_all(self, neighbours: Iterable[Neighbour]) -> None:
        """Their epoch is over."""
        for neighbour in neighbours:
            self.close(neighbour)
        self.retry()

    def close(self, neighbour: Neighbour) -> None:
        """The link is gone; a new one counts from the start."""
        self._received.pop(neighbour, None)
        self._put.pop(neighbour, None)
        if self._said.pop(neighbour, None) is not None:
            self._acknowledge(self._acks.close(neighbour))

    def _counts(self, message: Message, neighbour: Neighbour) -> bool:
        """Whether it is acknowledged, on a link of an epoch with several paths."""
        is_control = message.is_control if type(message) is Publication else None
        if is_control or (is_control is None and type(message) is not Sweep):
            return False
        return self._paths.counts(neighbour)
