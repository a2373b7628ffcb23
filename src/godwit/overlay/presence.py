"""Where other brokers are: needed for the few messages that are meant for one of them.

Publications find their way by content, and nothing else knows where a broker is.  A broker whose
clients begin to move away makes itself known once; from then on every broker knows the direction.

W1  A sweep waits where the way is not known yet: the news of it is on its way too.
"""

from __future__ import annotations

from godwit.broker.effects import Send
from godwit.broker.routing import Answer, Confirm
from godwit.broker.stimuli import Client, Hop, Neighbour
from godwit.content.messages import Absent, Present, Sweep, Swept

Answers = list[Answer]


class Presence:
    def __init__(self) -> None:
        self._direction: dict[str, Hop] = {}
        """To a broker; not a neighbour if it is this one."""
        self._waiting: dict[str, list[Sweep]] = {}

    def on_present(self, broker: str, last_hop: Hop, links: list[Neighbour]) -> Answers:
        if broker in self._direction:
            return []
        self._direction[broker] = last_hop
        answers: Answers = [Send(n, Present(broker=broker)) for n in links if n != last_hop]
        for sweep in self._waiting.pop(broker, ()):
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
            self._waiting.setdefault(sweep.to, []).append(sweep)
            return []
        if isinstance(direction, Neighbour):
            return [Send(direction, sweep)]
        return [Confirm(Client(sweep.client), Swept(move=sweep.move))]

    def link_up(self, neighbour: Neighbour) -> Answers:
        return [Send(neighbour, Present(broker=broker)) for broker in self._direction]

    def link_down(self, neighbour: Neighbour, links: list[Neighbour]) -> Answers:
        gone = [broker for broker, hop in self._direction.items() if hop == neighbour]
        return [answer for broker in gone for answer in self.on_absent(broker, neighbour, links)]
