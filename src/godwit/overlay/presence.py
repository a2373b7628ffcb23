"""Where other brokers are: needed for the few messages that are meant for one of them.

Publications find their way by content, and nothing else knows where a broker is.  A broker whose
clients begin to move away makes itself known once; from then on every broker knows the direction.

W1  A sweep waits where the way is not known yet: the news of it is on its way too.
W2  One sweep of a client waits at most, and not more than WAITING_MAX in all: whose sweep is
    forgotten does not move.
"""

from __future__ import annotations

from godwit.broker.effects import Send
from godwit.broker.routing import Answer, Confirm
from godwit.broker.stimuli import Client, Hop, Neighbour
from godwit.content.messages import Absent, Present, Sweep, Swept

Answers = list[Answer]

#: Sweeps that wait for the news of a broker, which may not exist.
WAITING_MAX = 10_000


class Presence:
    def __init__(self) -> None:
        self._direction: dict[str, Hop] = {}
        """To a broker; not a neighbour if it is this one."""
        self._waiting: dict[str, Sweep] = {}
        """By client, the oldest first."""

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
        return [Confirm(Client(sweep.client), Swept(move=sweep.move))]

    def link_up(self, neighbour: Neighbour) -> Answers:
        """Tell a neighbour what is not in its own direction; it may have been there before."""
        return [
            Send(neighbour, Present(broker=broker))
            for broker, hop in self._direction.items()
            if hop != neighbour
        ]

    def link_down(self, neighbour: Neighbour, links: list[Neighbour]) -> Answers:
        gone = [broker for broker, hop in self._direction.items() if hop == neighbour]
        return [answer for broker in gone for answer in self.on_absent(broker, neighbour, links)]
