"""The experiments about allocation: what is gathered, and how a plan is deployed and measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from godwit.experiments.allocation.deployed import (
    DeployedNetwork,
    deployed,
    drawn,
    initial_network,
    network_of,
    sampled,
)
from godwit.experiments.allocation.expected_state import expected_of
from godwit.experiments.allocation.initial_state import bits_of, gathered_of
from godwit.experiments.allocation.measures import (
    MEASURES,
    measure,
    measured_span,
    relative_errors,
)
from godwit.experiments.allocation.runs import planned_of, run, settings_of
from godwit.experiments.allocation.setups import AllocationSetup, setup_of
from godwit.experiments.cram_closeness.measures import measure as measure_closeness
from godwit.experiments.cram_closeness.runs import run as run_closeness
from godwit.experiments.cram_cost.measures import measure as measure_cost
from godwit.experiments.cram_cost.runs import run as run_cost
from godwit.experiments.cram_cost.runs import searched
from godwit.lab.declaration import Case
from godwit.lab.metrics.reading import read_trace
from godwit.policies.allocation.cbc import profiling_modules
from godwit.policies.allocation.cbc_settings import ProfilingSettings
from godwit.policies.allocation.gathered import Gathered
from godwit.profile.bit_vector import BitVector
from godwit.simulation.simulated_gathering import gather

SMALL: Case = {
    "brokers": 16, "capacity": "equal", "subscriptions": 200, "algorithm": "cram-iou",
}  # fmt: skip


def received(gathered: Gathered) -> dict[str, dict[str, set[int]]]:
    """For each client, the publications of each publisher that it received."""
    return {
        each.client or each.id: {
            publisher: {each.first_id[publisher] + i for i, bit in enumerate(bits) if bit == "1"}
            for publisher, bits in each.bits.items()
        }
        for each in gathered.subscriptions
    }


# -- setups --------------------------------------------------------------------------------------


def test_rs1_and_rs2_have_the_numbers_of_the_thesis() -> None:
    equal = setup_of({**SMALL, "brokers": 80, "subscriptions": 8000})
    assert set(equal.counts) == {200}
    assert len(equal.counts) == 40
    assert equal.topology.diameter == 11
    assert len({each.output_bandwidth_bytes_s for each in equal.resources.values()}) == 1

    totals = []
    for subscriptions in (1025, 2050, 3075, 4100):
        unequal = setup_of({"brokers": 80, "capacity": "unequal", "subscriptions": subscriptions})
        totals.append(sum(unequal.counts))
    assert totals == [1025, 2050, 3075, 4100]
    assert (min(unequal.counts), max(unequal.counts)) == (5, 200)
    shares = list(unequal.capacities.values())
    assert [shares.count(share) for share in (1.0, 0.5, 0.25)] == [15, 25, 40]
    assert shares == sorted(shares, reverse=True), "MANUAL has the strongest brokers on top"


def test_strong_brokers_start_with_more_clients() -> None:
    setup = setup_of({"brokers": 80, "capacity": "unequal", "subscriptions": 4100})
    at = [subscriber.at for subscriber in setup.workload(1).subscribers]
    of_share = {
        share: sum(setup.capacities[broker] == share for broker in at) for share in (1.0, 0.25)
    }
    assert of_share[1.0] / 15 == pytest.approx(4 * of_share[0.25] / 40, rel=0.15)


# -- gathering -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def setup() -> AllocationSetup:
    return setup_of(SMALL)


def test_deliveries_in_manual_are_what_the_filters_match(setup: AllocationSetup) -> None:
    simulated, expected = gathered_of(setup, 1), expected_of(setup, 1)

    assert received(simulated) == received(expected)
    assert simulated.brokers == expected.brokers
    assert [each.id for each in simulated.subscriptions] == [
        each.id for each in expected.subscriptions
    ]
    homes = [each.broker for each in simulated.subscriptions]
    assert homes == sorted(homes, key=str), "as brokers answer"
    for one, other in zip(simulated.publishers, expected.publishers, strict=True):
        assert (one.id, one.broker, one.last_id) == (other.id, other.broker, 139)
        assert one.rate_per_s == pytest.approx(70 / 60, rel=0.01)
        assert one.bandwidth_bytes_s == pytest.approx(other.bandwidth_bytes_s, rel=0.01)
    assert len({each.bandwidth_bytes_s for each in simulated.publishers}) == 1


def test_cbc_gathers_the_same(setup: AllocationSetup) -> None:
    simulator = deployed(
        initial_network(setup),
        setup,
        seed=1,
        publishing_s=setup.publishing_s,
        is_sampled=False,
        modules=profiling_modules(ProfilingSettings(vector_length=setup.vector_length)),
    )
    simulator.run(until_s=setup.begins_s + setup.publishing_s + 5.0)

    assert received(gather(simulator, at="B01")) == received(gathered_of(setup, 1))


def test_bits_start_with_the_first_publication() -> None:
    assert bits_of(BitVector.of([7, 8, 11], first=7)) == "11001"


def test_a_sample_covers_all_quotes_and_starts_again(setup: AllocationSetup) -> None:
    few = replace(setup, quotes=6, quotes_every=2)
    quotes = drawn(few.workload(1), few)
    workload = sampled(few.workload(1), few)
    publisher = workload.publishers[0]

    played = [workload.content(publisher) for _ in range(5)]

    of_publisher = quotes[publisher.name]
    assert len(of_publisher) == 6
    assert played == [of_publisher[number] for number in (0, 2, 4, 0, 2)]


def test_later_quotes_are_those_after_the_profiled_ones(setup: AllocationSetup) -> None:
    few = replace(setup, quotes=6, quotes_every=2)
    both = drawn(few.workload(1), replace(few, quotes=12))
    workload = sampled(few.workload(1), replace(few, plays_later=True))
    publisher = workload.publishers[0]

    played = [workload.content(publisher) for _ in range(4)]

    of_publisher = both[publisher.name]
    assert played == [of_publisher[number] for number in (6, 8, 10, 6)]
    later = setup_of({**SMALL, "quotes": "later"})
    assert later == replace(setup, plays_later=True)
    assert expected_of(later, 1) == expected_of(setup, 1), "the plan knows only the first"


def test_the_best_plan_is_beyond_the_thesis() -> None:
    thesis, best = (settings_of({**SMALL, "plan": plan}, 1) for plan in ("thesis", "best"))
    assert thesis == settings_of(SMALL, 1)
    assert (thesis.keep, thesis.improve_steps) == ("last", 0)
    assert best.keep == "fewest"
    assert best.improve_steps > 0


# -- deployment and measures ---------------------------------------------------------------------


def test_clients_are_where_the_plan_puts_them(setup: AllocationSetup) -> None:
    plan = planned_of(gathered_of(setup, 1), SMALL, 1)
    network = network_of(plan)
    simulator = deployed(network, setup, seed=1, publishing_s=0.0, is_sampled=True)
    simulator.run(until_s=setup.begins_s)

    homes = {
        client.name: node.name for node in simulator.brokers.values() for client in node.clients
    }
    assert homes == {**plan.assignment, **plan.publishers}
    assert network.topology.is_tree
    assert set(simulator.brokers) == {broker.id for broker in plan.brokers}


def test_a_network_is_measured_as_its_trace_says(spark: SparkSession, tmp_path: Path) -> None:
    run(SMALL, 1, tmp_path)
    found = measure(read_trace(spark, tmp_path), SMALL)

    over, setup = measured_span(SMALL), setup_of(SMALL)
    rows = [
        row
        for row in pq.read_table(tmp_path / "handled").to_pylist()
        if over.start_s <= row["time_s"] < over.end_s and row["kind"] == "Publication"
    ]
    brokers = {row["broker"] for row in rows}
    incoming = {each: sum(row["broker"] == each for row in rows) / 110.0 for each in brokers}
    capacity = setup.resources["B01"].output_bandwidth_bytes_s
    used = {
        each: sum(r["messages_out"] * r["size_bytes"] for r in rows if r["broker"] == each)
        / (110.0 * capacity)
        for each in brokers
    }
    assert found.keys() == MEASURES.keys()
    assert found["brokers"] == len(brokers) == 2
    assert found["messages_in_per_s_mean"] == pytest.approx(sum(incoming.values()) / 2)
    assert found["messages_in_per_s_max"] == pytest.approx(max(incoming.values()))
    assert found["output_utilisation_max"] == pytest.approx(max(used.values()))
    matching_s = sum(row["matching_delay_s"] for row in rows)
    assert found["input_utilisation_mean"] == pytest.approx(matching_s / 110.0 / 2)
    assert found["hops_mean"] == found["overloaded"] == 0
    assert found["error_input_max"] < 0.02
    assert found["error_output_max"] < 0.02
    assert found["error_messages_max"] < 0.02


def test_an_overload_is_told_and_whether_the_plan_foresaw_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same plan, on brokers with a tenth of their bandwidth."""
    case: Case = {**SMALL, "algorithm": "bin-packing"}
    weak = replace(setup_of(case), usable_per_s=13.0)
    monkeypatch.setattr("godwit.experiments.allocation.measures.setup_of", lambda _case: weak)
    run(case, 1, tmp_path)

    found = measure(read_trace(spark, tmp_path), case)

    assert found["overloaded"] == found["overloaded_unforeseen"] == found["brokers"]


def test_grape_moves_publishers_of_manual_before_they_are_measured(
    spark: SparkSession, tmp_path: Path
) -> None:
    case: Case = {**SMALL, "algorithm": "manual", "publishers": "grape"}
    run(case, 1, tmp_path)
    found = measure(read_trace(spark, tmp_path), case)

    moved = [
        row["time_s"]
        for row in pq.read_table(tmp_path / "decisions").to_pylist()
        if row["policy"] == "migration"
    ]
    over = measured_span(case)
    assert moved
    assert min(moved) < over.start_s == measured_span(SMALL).start_s + setup_of(case).moving_s
    assert found["brokers"] == 16
    assert "error_input_max" not in found


def test_publishers_stay_at_the_root_if_a_case_says_so() -> None:
    assert settings_of(SMALL, 1).uses_grape
    assert not settings_of({**SMALL, "algorithm": "manual"}, 1).uses_grape
    at_root: Case = {**SMALL, "publishers": "root"}
    plan = planned_of(expected_of(setup_of(SMALL), 1), at_root, 1)
    assert set(plan.publishers.values()) == {plan.root}


def test_errors_are_relative_to_what_was_measured() -> None:
    assert relative_errors([(11.0, 10.0), (0.0, 0.0), (1.0, 0.0)]) == [pytest.approx(0.1), 0, 1]


# -- plans that are not deployed -----------------------------------------------------------------


def test_a_search_counts_groups_pairs_and_partners_that_it_misses(
    spark: SparkSession, tmp_path: Path
) -> None:
    case: Case = {**SMALL, "study": "search", "search": "exact"}
    run_cost(case, 1, tmp_path)
    found = measure_cost(read_trace(spark, tmp_path), case)

    profiles = received(expected_of(setup_of(case), 1)).values()
    groups = {
        frozenset((name, id) for name, ids in each.items() for id in ids) for each in profiles
    }
    assert found["gifs"] == len(groups) < found["subscriptions"] == 200
    assert found["pairs"] == len(groups) * (len(groups) - 1) / 2
    assert 0 < found["evaluations"] < found["pairs"]
    assert found["missed"] == 0
    stopped = searched(expected_of(setup_of(case), 1), is_exact=False)
    assert stopped["evaluations"] != found["evaluations"]


def test_the_clusters_of_xor_are_of_disjoint_subscriptions(
    spark: SparkSession, tmp_path: Path
) -> None:
    found = {}
    for algorithm in ("cram-xor", "cram-iou"):
        case: Case = {**SMALL, "study": "clusters", "algorithm": algorithm}
        run_closeness(case, 1, tmp_path / algorithm)
        found[algorithm] = measure_closeness(read_trace(spark, tmp_path / algorithm), case)

    assert found["cram-xor"]["clusters_disjoint"] > 0
    assert found["cram-iou"]["clusters_disjoint"] == 0
    assert found["cram-iou"]["clusters_of_many"] > found["cram-xor"]["clusters_of_many"]


def test_a_network_without_a_plan_is_manual(setup: AllocationSetup) -> None:
    assert initial_network(setup) == DeployedNetwork(setup.topology, {})
