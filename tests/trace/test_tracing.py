"""The trace of a simulation against what the simulator's own statistics counted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest
from tests.trace.test_writer import rows

from godwit.content.filters import Filter
from godwit.demos.stocks.stock_scenario import StockScenario
from godwit.overlay.topology import chain
from godwit.policies import placement
from godwit.policies.placement.settings import GrapeSettings
from godwit.simulation.simulation_trace import SimulationTrace
from godwit.simulation.simulator import Simulator
from godwit.simulation.statistics import Statistics
from godwit.trace.recorder import Recorder
from godwit.trace.writer import TraceWriter

STOCK = Filter.parse("class = 'STOCK'")
SCENARIO = StockScenario(
    brokers=7, publishers=3, subscribers_per_publisher=10, joining_s=10.0, duration_s=30.0
)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_trace_has_what_happened(seed: int, tmp_path: Path) -> None:
    counted = Statistics()
    with TraceWriter(tmp_path) as writer:
        tracing = SimulationTrace(Recorder(writer))
        simulator = SCENARIO.build(seed=seed, observers=(counted, tracing))
        tracing.read_gauges(simulator, every_s=5.0)
        simulator.run(until_s=32.0)
    handled, delivered = rows(tmp_path / "handled"), rows(tmp_path / "delivered")
    gauges = rows(tmp_path / "gauges")

    assert len(handled) == counted.handled
    assert len(delivered) == counted.deliveries
    assert {row["broker"] for row in gauges} == set(simulator.brokers)
    assert sorted({row["time_s"] for row in gauges}) == [5.0 * n for n in range(7)]
    for row in handled:
        assert row["queue_delay_s"] >= 0.0
        assert row["matching_delay_s"] > 0.0
    for row in gauges:
        assert row["memory_bytes"] >= row["bytes_queued"], "queues, and the matching engine"
    # A copy that was sent was received where it went to, and one for a client was handed over.
    ways = Counter((r["broker"], to) for r in handled for to in (r["went_to"] or "").split())
    arrivals = {(row["came_from"], row["broker"]) for row in handled if row["from_broker"]}
    assert ways.keys() == arrivals
    publications = [row for row in handled if row["kind"] == "Publication"]
    assert sum(row["copies"] for row in publications) == sum(r["from_broker"] for r in publications)
    assert sum(row["local_matches"] for row in publications) == len(delivered)
    # What is on the way at the end would show here: the run ends two seconds after the last quote.
    hops = {(row["publisher"], row["sequence"], row["hops"]) for row in publications}
    assert {(row["publisher"], row["sequence"], row["hops"]) for row in delivered} <= hops


def test_a_trace_has_what_was_decided_and_who_moved(tmp_path: Path) -> None:
    with TraceWriter(tmp_path) as writer:
        simulator = Simulator(
            chain(2),
            seed=1,
            modules=placement.modules(GrapeSettings(publications_per_session=5)),
            observers=[SimulationTrace(Recorder(writer))],
        )
        simulator.client("alice", at="B2").subscribe(STOCK)
        paul = simulator.client("paul", at="B1")
        advertisement = paul.advertise(STOCK)
        for number in range(9):
            simulator.at(1.0 + number, paul.publish, advertisement, {"class": "STOCK"})
        simulator.run(until_s=20.0)
    asked, left, moved = sorted(rows(tmp_path / "decisions"), key=lambda row: row["time_s"])

    reason = msgspec.json.decode(asked.pop("reason"))
    assert (reason["messages_here"], reason["messages_there"]) == (10, 5)
    assert 5.0 < asked.pop("time_s") < 5.1
    decided = {"subject": "paul", "source": "B1", "target": "B2"}
    assert asked == {"broker": "B1", "policy": "grape", "action": "asked", **decided}
    assert msgspec.json.decode(left.pop("reason"))["took_s"] < 0.1
    assert 5.0 < left.pop("time_s") < 5.1
    assert left == {"broker": "B1", "policy": "grape", "action": "left", **decided}
    took = msgspec.json.decode(moved.pop("reason"))
    assert 0 < took["paused_s"] <= took["took_s"] < 0.1
    assert 5.0 < moved.pop("time_s") < 5.1
    assert moved == {"broker": "B2", "policy": "migration", "action": "moved", **decided}
