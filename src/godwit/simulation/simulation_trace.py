"""A trace of a simulation: an observer that records, and gauges read every few seconds."""

from __future__ import annotations

from godwit.broker.effects import Decision
from godwit.simulation.observers import Observer
from godwit.simulation.simulator import Simulator
from godwit.trace.recorder import Recorder

GAUGES_EVERY_S = 10.0


class SimulationTrace(Observer):
    """Pass it to the simulator, then call `read_gauges` once."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        # Not methods that call the recorder's: one more call for every message costs time.
        self.on_matched = recorder.handled  # type: ignore[assignment, method-assign]
        self.on_delivered = recorder.delivered  # type: ignore[assignment, method-assign]
        self.on_decision = recorder.decided  # type: ignore[method-assign]

    def on_moved(
        self, client: str, source: str, target: str, took_s: float, paused_s: float, now_s: float
    ) -> None:
        """Moves of policies and of clients themselves."""
        reason = {"took_s": took_s, "paused_s": paused_s}
        moved = Decision("moved", client, source, target, reason)
        self._recorder.decided(target, "migration", moved, now_s)

    def read_gauges(self, simulator: Simulator, *, every_s: float = GAUGES_EVERY_S) -> None:
        """Record the gauges of every broker now, and again every `every_s`."""
        for node in simulator.brokers.values():
            if node.is_up:
                self._recorder.gauge(
                    node.broker,
                    time_s=simulator.now_s,
                    messages_queued=node.waiting,
                    bytes_queued=node.queued_bytes,
                    memory_bytes=round(node.memory_bytes),
                    clients=len(node.clients),
                )
        simulator.at(
            simulator.now_s + every_s, lambda: self.read_gauges(simulator, every_s=every_s)
        )
