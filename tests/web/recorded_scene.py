"""A recorded trace of simulated stock quotes."""

from __future__ import annotations

from pathlib import Path

from godwit.demos.stocks.stock_scenario import StockScenario
from godwit.simulation.simulation_trace import SimulationTrace
from godwit.trace.recorder import Recorder
from godwit.trace.writer import TraceWriter

DURATION_S = 20.0


def record(folder: Path, *, brokers: int = 7, publishers: int = 3) -> None:
    scenario = StockScenario(
        brokers=brokers,
        publishers=publishers,
        subscribers_per_publisher=10,
        joining_s=10.0,
        duration_s=DURATION_S,
    )
    with TraceWriter(folder) as writer:
        tracing = SimulationTrace(Recorder(writer))
        simulator = scenario.build(seed=1, observers=(tracing,))
        tracing.read_gauges(simulator, every_s=2.0)
        simulator.run(until_s=DURATION_S + 2.0)
