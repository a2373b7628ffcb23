"""R1, R2 and the invariants of the tables, to be called after each step of a test."""

from __future__ import annotations

from collections.abc import Sequence

from godwit.broker.core import Broker
from godwit.broker.effects import Deliver, Effect, Send
from godwit.broker.stimuli import Hop, Received, Stimulus
from godwit.content.messages import Publication


def check_step(broker: Broker, stimulus: Stimulus, effects: Sequence[Effect]) -> None:
    if not isinstance(stimulus, Received):
        return
    if isinstance(stimulus.message, Publication):
        copies: list[Hop] = []
        for effect in effects:
            match effect:
                case Send(to=neighbour, message=Publication()):  # A module may write back.
                    copies.append(neighbour)
                case Deliver(to=clients):
                    copies.extend(clients)
        assert stimulus.last_hop not in copies, f"R1: {broker.name} sent a publication back"
        assert len(copies) == len(set(copies)), f"R2: {broker.name} sent a hop two copies"
    else:
        broker.routing.check()  # Publications do not change the tables.
