"""Drain a simulated broker: its clients are asked to move away, and then it leaves the overlay.

    drain(simulator, "B8", lambda: "B2")

Clients are asked as a live broker asks them, with `MoveTo`, a few at a time.  One that stays, or
that arrives while the broker is drained, is asked again.
"""

from __future__ import annotations

from collections.abc import Callable

from godwit.broker.effects import Notify
from godwit.content.messages import MOVE_S, MoveTo
from godwit.simulation.simulator import Simulator

#: How often clients are asked, and how many at a time.
ROUND_S = 1.0
CLIENTS_PER_ROUND = 100


def drain(
    simulator: Simulator, broker: str, choose: Callable[[], str], *, within_s: float = MOVE_S
) -> None:
    """Move the clients of `broker` away, and remove it when they are gone.

    `choose` returns the broker that the next client is sent to.  `within_s` is the time that a
    client has to arrive; after it the client is asked again.
    """
    node = simulator.node(broker)
    asked_s: dict[str, float] = {}

    def ask() -> None:
        now_s = simulator.now_s
        if not node.is_up:
            return
        if not node.clients:
            simulator.remove_broker(broker)
            return
        due = [c for c in node.clients if now_s - asked_s.get(c.name, -within_s) >= within_s]
        for client in due[:CLIENTS_PER_ROUND]:
            asked_s[client.name] = now_s
            node.perform([Notify(client, MoveTo(broker=choose(), within_s=within_s))])
        simulator.at(now_s + ROUND_S, ask)

    ask()
