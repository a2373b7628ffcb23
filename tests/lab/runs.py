"""Small simulations, traced, with moves that no broker made."""

from __future__ import annotations

from pathlib import Path

from tests.sweeps import seeds

from godwit.demos.stocks.stock_scenario import StockScenario
from godwit.lab.metrics.stages import Span
from godwit.simulation.resources import BrokerResources
from godwit.simulation.simulation_trace import SimulationTrace
from godwit.trace.recorder import Recorder
from godwit.trace.writer import TraceWriter

SEEDS = range(1, 1 + seeds(2, whole=3))
#: Starts among the subscriptions and ends among the quotes; its buckets do not fit into it.
OVER = Span(12.5, 71.0, bucket_s=7.0)

SCENARIO = StockScenario(
    brokers=15,
    publishers=4,
    subscribers_per_publisher=15,
    brokers_with_subscribers=4,
    joining_s=20.0,
    duration_s=75.0,
    resources=BrokerResources(cpu_speed=0.7),  # Slow enough for queues.
)


def trace_run(folder: Path, seed: int) -> Path:
    with TraceWriter(folder) as writer:
        recorder = Recorder(writer)
        tracing = SimulationTrace(recorder)
        simulator = SCENARIO.build(seed=seed, observers=(tracing,))
        tracing.read_gauges(simulator)
        simulator.run(until_s=SCENARIO.duration_s + 5.0)
        for number in range(40):
            recorder.decision(
                f"B{number % 3}",
                time_s=2.0 * number,
                policy=f"policy{number % 2}",
                action=("proposed", "moved", "refused")[number * seed % 3],
                subject="somebody",
                source="B0",
                target="B1",
                reason="{}",
            )
    return folder
