"""Runs a simulation that is traced and checked by the oracle, as most experiments do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from godwit.simulation.observers import Observer
from godwit.simulation.oracle import Oracle
from godwit.simulation.simulation_trace import GAUGES_EVERY_S, SimulationTrace
from godwit.simulation.simulator import Simulator
from godwit.trace.recorder import Recorder
from godwit.trace.writer import TraceWriter

#: Longer than a message takes over a few links without queues.
LINKS_S = 1.0


def run_watched(
    build: Callable[[tuple[Observer, ...]], Simulator],
    folder: Path,
    *,
    until_s: float,
    gauges_every_s: float = GAUGES_EVERY_S,
) -> None:
    """Run the simulator that `build` makes until `until_s`, and on until all queues are empty.

    A delivery that is lost, duplicate, unwanted or out of order is an error.
    """
    oracle = Oracle()
    with TraceWriter(folder) as writer:
        tracing = SimulationTrace(Recorder(writer))
        simulator = build((tracing, oracle))
        tracing.read_gauges(simulator, every_s=gauges_every_s)
        simulator.run(until_s=until_s)
        while any(node.waiting for node in simulator.brokers.values()):
            simulator.run(until_s=simulator.now_s + LINKS_S)
        simulator.run(until_s=simulator.now_s + LINKS_S)
    oracle.finish(simulator.now_s)
    wrong = "; ".join(map(str, oracle.violations[:3]))
    assert oracle.is_satisfied, f"{oracle.violation_count} violations: {wrong}"
    refused = [refusal for client in simulator.clients.values() for refusal in client.refusals]
    assert not refused, f"a broker refused a request: {refused[0].reason}"
    assert oracle.deliveries, "the run has no deliveries"
