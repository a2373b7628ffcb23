"""Profiles from a trace against what CBC gathered in the same run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from godwit.cli import app
from godwit.content.filters import Filter
from godwit.errors import UsageError
from godwit.lab.metrics.reading import read_trace
from godwit.lab.trace_profiles import _brokers, gathered_from_trace
from godwit.overlay.topology import balanced_tree
from godwit.policies.allocation.cbc import profiling_modules
from godwit.policies.allocation.cbc_pages import bit_text
from godwit.policies.allocation.gathered import Gathered
from godwit.policies.allocation.plan import AllocationPlan
from godwit.profile.bit_vector import BitVector
from godwit.runtime.settings import BrokerSettings, NetworkSettings, dump_network
from godwit.simulation.resources import BrokerResources
from godwit.simulation.simulated_gathering import gather
from godwit.simulation.simulation_trace import SimulationTrace
from godwit.simulation.simulator import Simulator
from godwit.trace.recorder import Recorder
from godwit.trace.writer import TraceWriter

RESOURCES = BrokerResources(output_bandwidth_bytes_s=400_000.0)
END_S = 50.0


def traced_run(folder: Path, *, sample_every: int = 1) -> Gathered:
    """What CBC gathers at END_S; the trace ends there."""
    with TraceWriter(folder) as writer:
        tracing = SimulationTrace(Recorder(writer, sample_every=sample_every))
        simulator = Simulator(
            balanced_tree(5, fanout=2),
            seed=1,
            resources=RESOURCES,
            modules=profiling_modules(),
            observers=(tracing,),
            check=False,
        )
        tracing.read_gauges(simulator)
        _play(simulator)
        simulator.run(until_s=END_S)
    return gather(simulator, at="B4")


def _play(simulator: Simulator) -> None:
    """Two publishers, one of which sends more than a vector holds, and late; eight clients."""
    for number, (at, count, gap_s) in enumerate((("B2", 1_500, 0.02), ("B5", 200, 0.1))):
        publisher = simulator.client(f"p{number}", at=at)
        advertised = publisher.advertise(Filter.parse("kind is a number and from is a string"))
        for step in range(count):
            content = {"kind": step % 7, "from": publisher.name}
            simulator.at(10.0 + gap_s * step, publisher.publish, advertised, content)
    for number in range(8):
        client = simulator.client(f"s{number}", at=f"B{1 + number % 5}")
        kinds = (f"kind = {number % 7}", "from = 'p0' and kind > 4", "from = 'p1'")
        for text in kinds[: 1 + number % 3]:
            simulator.at(5.0, client.subscribe, Filter.parse(text))
    silent = simulator.client("silent", at="B3")
    simulator.at(5.0, silent.subscribe, Filter.parse("kind > 100"))
    gone = simulator.client("gone", at="B3")

    def come_and_go() -> None:
        id = gone.subscribe(Filter.parse("kind > 2"))
        simulator.at(20.0, gone.unsubscribe, id)

    simulator.at(5.0, come_and_go)


def by_client(gathered: Gathered) -> dict[tuple[str, str], dict[str, tuple[int, str]]]:
    """Clients as a trace knows them: over the window that all vectors of a publisher share."""
    windows = {
        each.id: range(max(each.first_id or 0, each.last_id - 1_279), each.last_id + 1)
        for each in gathered.publishers
    }
    vectors: dict[tuple[str, str], dict[str, BitVector]] = {}
    for each in gathered.subscriptions:
        mine = vectors.setdefault((str(each.client), str(each.broker)), {})
        for name, bits in each.bits.items():
            ids = [each.first_id[name] + n for n, bit in enumerate(bits) if bit == "1"]
            vector = BitVector.of(ids, first=each.first_id[name]).within(windows[name])
            mine[name] = mine[name] | vector if name in mine else vector
    return {
        client: {name: (each.first, bit_text(each)) for name, each in mine.items() if each}
        for client, mine in vectors.items()
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Gathered]:
    folder = tmp_path_factory.mktemp("traced")
    return folder, traced_run(folder)


def test_a_trace_says_what_cbc_gathered(spark: SparkSession, run: tuple[Path, Gathered]) -> None:
    folder, gathered = run
    capacities: Mapping[str, float] = {
        each.id: each.output_bandwidth_bytes_s for each in gathered.brokers
    }
    found = gathered_from_trace(read_trace(spark, folder), capacities)
    assert by_client(found) == by_client(gathered)
    assert by_client(found)["silent", "B3"] == {}, "it received nothing, and is there"
    assert not any(client == "gone" for client, _ in by_client(found))
    for traced, told in zip(found.publishers, gathered.publishers, strict=True):
        assert (traced.id, traced.broker) == (told.id, told.broker)
        assert (traced.first_id, traced.last_id) == (told.first_id, told.last_id)
        # CROC asked a moment after the end of the trace.
        assert traced.rate_per_s == pytest.approx(told.rate_per_s, rel=0.02)
        assert traced.bandwidth_bytes_s == pytest.approx(told.bandwidth_bytes_s, rel=0.02)
    for there, here in zip(found.brokers, gathered.brokers, strict=True):
        assert there.neighbours == here.neighbours
        assert there.output_bandwidth_bytes_s == here.output_bandwidth_bytes_s
        assert there.matching_delay_base_s == pytest.approx(here.matching_delay_base_s, rel=0.2)


def test_capacities_may_be_given_as_a_whole_and_must_be_complete(
    spark: SparkSession, run: tuple[Path, Gathered]
) -> None:
    folder, gathered = run
    given = {
        each.id: replace(each, matching_delay_base_s=7.0, neighbours=())
        for each in gathered.brokers
    }
    tables = read_trace(spark, folder)
    assert {each.matching_delay_base_s for each in _brokers(tables, given)} == {7.0}
    with pytest.raises(UsageError, match=r"capacities of B2, B3, B4, B5 are not given"):
        gathered_from_trace(tables, {"B1": given["B1"]})


def test_a_sampled_trace_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    gathered = traced_run(tmp_path, sample_every=5)
    given = {each.id: each for each in gathered.brokers}
    with pytest.raises(UsageError, match=r"one of 5 publications of p0: .* `sample_every = 1`"):
        gathered_from_trace(read_trace(spark, tmp_path), given)


def test_a_plan_from_a_trace(spark: SparkSession, run: tuple[Path, Gathered]) -> None:
    """By the command; it uses the session that there is."""
    folder, gathered = run
    brokers = [
        BrokerSettings(id=each.id, output_bandwidth_bytes_s=each.output_bandwidth_bytes_s)
        for each in gathered.brokers
    ]
    capacities = folder / "network.toml"
    capacities.write_text(dump_network(NetworkSettings(broker=brokers)))
    assert spark.sparkContext.master == "local[*]"
    arguments = ["croc", "plan", "--trace", str(folder), "--master", "local[*]", "--json"]
    arguments += ["--capacities", str(capacities), "--algorithm", "bin-packing"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    plan = msgspec.json.decode(result.output, type=AllocationPlan)
    assert set(plan.assignment) == {str(each.client) for each in gathered.subscriptions}
