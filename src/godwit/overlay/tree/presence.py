"""The direction of brokers, for the few messages that are addressed to one of them.

Publications are routed by content and need no direction.  A broker whose clients begin to move away
floods `Present` once; from then on every broker has the direction.

W1  A sweep waits where the direction is not known yet: `Present` is on its way.
W2  At most one sweep of a client waits, and at most WAITING_MAX in all.  A client whose sweep is
    discarded does not move.
"""

from __future__ import annotations

from godwit.broker.effects import Send
from godwit.broker.routing import Answer, Confirm
from godwit.broker.stimuli import Hop, LocalClient, Neighbour
from godwit.content.messages import Absent, Present, Sweep, Swept

Answers = list[Answer]

#: Sweeps that wait for the direction of a broker, which may not exist.
WAITING_MAX = 10_000


class Presence:
    def __init__(self) -> None:
        self._direction: dict[str, Hop] = {}
        """The hop towards each broker; not a neighbour for this broker itself."""
        self._waiting: dict[str, Sweep] = {}
        """Sweeps by client, the oldest first."""

    def handle(
        self, message: Present | Absent | Sweep, last_hop: Hop, links: list[Neighbour]
    ) -> Answers:
        match message:
            case Present(broker=broker):
                return self.on_present(broker, last_hop, links)
            case Absent(broker=broker):
                return self.on_absent(broker, last_hop, links)
            case Sweep():
                return self.on_sweep(message)

    def on_present(self, broker: str, last_hop: Hop, links: list[Neighbour]) -> Answers:
        if broker in self._direction:
            return []
        self._direction[broker] = last_hop
        answers: Answers = [Send(n, Present(broker=broker)) for n in links if n != last_hop]
        for sweep in [sweep for sweep in self._waiting.values() if sweep.to == broker]:
            del self._waiting[sweep.client]
            answers += self.on_sweep(sweep)
        return answers

    def on_absent(self, broker: str, last_hop: Hop, links: list[Neighbour]) -> Answers:
        if self._direction.get(broker) != last_hop:
            return []
        del self._direction[broker]
        return [Send(n, Absent(broker=broker)) for n in links if n != last_hop]

    def on_sweep(self, sweep: Sweep) -> Answers:
        direction = self._direction.get(sweep.to)
        if direction is None:  # W1
            self._waiting.pop(sweep.client, None)
            self._waiting[sweep.client] = sweep
            if len(self._waiting) > WAITING_MAX:  # W2
                del self._waiting[next(iter(self._waiting))]
            return []
        if isinstance(direction, Neighbour):
            return [Send(direction, sweep)]
        return [Confirm(LocalClient(sweep.client), Swept(move=sweep.move))]

    @property
    def waiting(self) -> list[Sweep]:
        return list(self._waiting.values())

    def own(self) -> list[tuple[Hop, Present]]:
        """The own broker, if its clients have begun to move away, and the client that was first."""
        return [
            (hop, Present(broker=broker))
            for broker, hop in self._direction.items()
            if not isinstance(hop, Neighbour)
        ]

    def link_up(self, neighbour: Neighbour) -> Answers:
        """Send a neighbour the brokers that are not in its own direction."""
        return [
            Send(neighbour, Present(broker=broker))
            for broker, hop in self._direction.items()
            if hop != neighbour
        ]

    def link_down(self, neighbour: Neighbour, links: list[Neighbour]) -> Answers:
        gone = [broker for broker, hop in self._direction.items() if hop == neighbour]
        return [answer for broker in gone for answer in self.on_absent(broker, neighbour, links)]
