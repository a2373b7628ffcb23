"""What watches a node: it sees what the broker handles, and changes nothing of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from godwit.broker.core import Broker
from godwit.broker.effects import Effect
from godwit.broker.stimuli import LocalClient, Neighbour, Stimulus
from godwit.runtime.peer_reader import Arrived

#: For each publication of a run the effects it had, and the bytes it came as.
Outcomes = Iterator[tuple[list[Effect], bytes]]


class Tracer(Protocol):
    """Watches what the broker handles.  Changes nothing of it."""

    def handle(self, broker: Broker, stimulus: Stimulus, now_s: float) -> list[Effect]:
        """The result of `broker.handle`, recorded."""
        ...

    def watch(
        self, outcomes: Outcomes, run: Sequence[Arrived], hop: LocalClient | Neighbour, now_s: float
    ) -> Outcomes:
        """The outcomes of `handle_run`, each recorded when it is taken."""
        ...
