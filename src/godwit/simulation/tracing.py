"""A trace of a simulation: an observer that records, and gauges read every few seconds."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import json

from godwit.broker.effects import Decision, Effect
from godwit.broker.stimuli import Received
from godwit.content.messages import Publication, size_bytes
from godwit.simulation.observers import Observer
from godwit.simulation.simulator import Simulator
from godwit.trace.recorder import Recorder

GAUGES_EVERY_S = 10.0


class Tracing(Observer):
    """Pass it to the simulator, then call `read_gauges` once."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._handled = recorder.handled

    def on_matched(
        self,
        broker: str,
        received: Received,
        effects: Sequence[Effect],
        *,
        arrived_s: float,
        started_s: float,
        done_s: float,
        size_bytes: int,
    ) -> None:
        self._handled(
            broker,
            received,
            effects,
            done_s,
            started_s - arrived_s,
            done_s - started_s,
            size_bytes,
        )

    def on_delivered(
        self, clients: Sequence[str], publication: Publication, hops: int, now_s: float
    ) -> None:
        self._recorder.delivered(clients, publication, hops, now_s, size_bytes(publication))

    def on_decision(self, broker: str, policy: str, decision: Decision, now_s: float) -> None:
        self._recorder.decision(
            broker,
            time_s=now_s,
            policy=policy,
            action=decision.action,
            subject=decision.subject,
            source=decision.source,
            target=decision.target,
            reason=json.encode(decision.reason).decode(),
        )

    def on_moved(
        self,
        client: str,
        source: str,
        target: str,
        *,
        began_s: float,
        paused_s: float,
        now_s: float,
    ) -> None:
        """Whoever wanted it: a policy, or the client itself."""
        reason = Decision(
            "moved", client, source, target, {"took_s": now_s - began_s, "paused_s": paused_s}
        )
        self.on_decision(target, "migration", reason, now_s)

    def read_gauges(self, simulator: Simulator, *, every_s: float = GAUGES_EVERY_S) -> None:
        """Record the gauges of every broker now, and again every `every_s`."""
        for node in simulator.brokers.values():
            if node.is_up:
                self._recorder.gauge(
                    node.broker,
                    time_s=simulator.now_s,
                    messages_queued=node.waiting,
                    bytes_queued=node.queued_bytes,
                    clients=len(node.clients),
                )
        simulator.at(
            simulator.now_s + every_s, lambda: self.read_gauges(simulator, every_s=every_s)
        )
