"""CRAM on Spark against CRAM on one machine, and what it must never do.

tests/lab/test_cluster.py runs it on a standalone cluster.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import msgspec
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace
from pyspark.sql import SparkSession
from tests.lab.plans import LIMITS, SETTINGS, market, planned
from tests.policies.allocation.scenes import (
    brokers,
    gathered,
    publisher,
    subscription,
)
from typer.testing import CliRunner

from godwit.cli import app
from godwit.cli.croc_large import plan_trace_on_spark
from godwit.errors import UsageError
from godwit.lab.large_plans.large_plan import PlanLimits, planned_on_spark
from godwit.lab.large_plans.profile_frames import frame_of_problem, frame_of_vectors
from godwit.lab.metrics.reading import read_trace
from godwit.lab.trace_profiles import (
    gathered_from_trace,
    homes_of_trace,
    network_of_trace,
    vectors_of_trace,
)
from godwit.policies.allocation.capacity import UnallocatableError
from godwit.policies.allocation.gathered_reading import read
from godwit.policies.allocation.plan import AllocationPlan
from godwit.policies.allocation.planner import make_plan
from godwit.policies.allocation.settings import AllocationSettings

#: Of the plan of one machine: more brokers, or more publications at all brokers.
BROKERS_MORE, INPUT_MORE = 1, 1.15


def input_per_s(plan: AllocationPlan) -> float:
    return sum(broker.input_per_s for broker in plan.brokers)


def test_a_plan_is_nearly_as_good_as_on_one_machine(spark: SparkSession) -> None:
    document = market(Random(1))
    problem = read(document, compensate=False)
    expected = make_plan(document, SETTINGS)
    made = planned(spark, document, LIMITS)
    plan = made.plan

    assert made.clusters < made.gifs / 2, "rounds have merged"
    assert len(plan.brokers) <= len(expected.brokers) + BROKERS_MORE
    assert input_per_s(plan) <= INPUT_MORE * input_per_s(expected)
    assert plan.lower_bound_brokers == expected.lower_bound_brokers <= len(plan.brokers)
    assert plan.lower_bound_traffic_per_s == pytest.approx(expected.lower_bound_traffic_per_s)
    assert plan.closeness_evaluations > 0

    # Everybody has a place, and brokers send what their subscribers are sent, and to their links.
    assert plan.assignment.keys() == {each.id for each in document.subscriptions}
    sent = dict.fromkeys((broker.id for broker in plan.brokers), 0.0)
    for each in problem.subscribers:
        sent[plan.assignment[each.name]] += problem.table.bandwidth_bytes_s(each.profile)
    for broker in plan.brokers:
        served = [name for name, home in plan.assignment.items() if home == broker.id]
        assert broker.subscriptions == len(served)
        assert sent[broker.id] - 1e-6 <= broker.output_bytes_s < 60_000.0
        assert broker.matching_utilisation <= 1
    now = {each.id: each.broker for each in document.subscriptions}
    assert plan.moves == sum(home != now[name] for name, home in plan.assignment.items())


def test_the_plan_does_not_depend_on_the_order_of_rows_or_on_partitions(
    spark: SparkSession,
) -> None:
    """Groups are cut into many pieces here, so what is in a piece would show the order of rows."""
    document = market(Random(2), subscriptions=300, publishers=2)
    limits = PlanLimits(piece_max=8, enough=10)
    one = planned(spark, document, limits, partitions=1)
    mixed = Random(3).sample(document.subscriptions, len(document.subscriptions))
    other = planned(spark, replace(document, subscriptions=tuple(mixed)), limits, partitions=5)
    assert one == other


def test_with_few_units_it_is_the_plan_of_one_machine_from_gifs(spark: SparkSession) -> None:
    """Without rounds, of unlike profiles, CRAM sees the same units."""
    bits = [("1" * n + "0" * 4) * 3 for n in range(3, 15)]
    document = gathered(
        [subscription(f"s{n:02}", text) for n, text in enumerate(bits)], brokers(8, 1_200.0)
    )
    expected = make_plan(document, SETTINGS)
    plan = planned(spark, document, PlanLimits()).plan
    assert len(plan.brokers) == len(expected.brokers)
    assert input_per_s(plan) == pytest.approx(input_per_s(expected))


def test_units_that_are_too_large_for_the_brokers_are_made_smaller(spark: SparkSession) -> None:
    """A broker has room for five receivers; of three units of three, the last finds none."""
    document = gathered(
        [subscription(f"s{n}", "1" * 64) for n in range(9)],
        brokers(2, 3_300.0),
        [publisher("p1", rate=64)],
    )
    coarse, fine = PlanLimits(shares=(0.65,)), PlanLimits(shares=(0.65, 0.1))
    with pytest.raises(UnallocatableError, match="finds no room"):
        planned(spark, document, coarse)
    plan = planned(spark, document, fine).plan
    assert sorted(broker.subscriptions for broker in plan.brokers) == [4, 5]


def test_a_network_without_subscriptions_keeps_one_broker(spark: SparkSession) -> None:
    made = planned(spark, gathered([], brokers(3)), PlanLimits())
    assert [broker.subscriptions for broker in made.plan.brokers] == [0]
    assert made.plan.assignment == {}


def test_a_client_with_the_name_of_a_subscription_is_refused(spark: SparkSession) -> None:
    document = gathered([subscription("a", "1"), subscription("b", "1", client="a")], brokers(2))
    with pytest.raises(UsageError, match="'a' is the name of a client and of a subscription"):
        frame_of_problem(spark, read(document))


def test_a_plan_needs_a_broker(spark: SparkSession) -> None:
    problem = read(gathered([subscription("a", "1")], ()))
    frame = frame_of_problem(spark, problem)
    with (
        pytest.raises(UsageError, match="brokers: there are none"),
        planned_on_spark(frame, problem.table, problem.brokers, SETTINGS),
    ):
        pass


# -- from a trace ------------------------------------------------------------------------------


def test_the_profiles_of_a_trace_are_those_of_its_document(
    spark: SparkSession, traces: dict[int, Path]
) -> None:
    trace = read_trace(spark, traces[1])
    capacities = {
        row["broker"]: 1e6 for row in trace["gauges"].select("broker").distinct().collect()
    }
    network = network_of_trace(trace, capacities)
    table = read(network).table
    vectors, homes = vectors_of_trace(trace), homes_of_trace(trace)
    found = frame_of_vectors(homes, vectors, network, table).toArrow().sort_by("subscriber")

    problem = read(gathered_from_trace(trace, capacities))
    expected = frame_of_problem(spark, problem).toArrow().sort_by("subscriber")
    assert problem.table == table
    assert any(row["profile"] for row in found.to_pylist())
    assert found.to_pylist() == expected.to_pylist()


def test_the_command_plans_on_spark(
    spark: SparkSession, traces: dict[int, Path], tmp_path: Path
) -> None:
    trace = read_trace(spark, traces[1])
    names = {row["broker"] for row in trace["gauges"].select("broker").distinct().collect()}
    capacities = tmp_path / "capacities.json"
    capacities.write_bytes(msgspec.json.encode({"brokers": [
        {"id": name, "output_bandwidth_bytes_s": 1e6, "matching_delay_base_s": 1e-5,
         "matching_delay_per_subscription_s": 1e-7} for name in names]}))  # fmt: skip
    source = ("--trace", str(traces[1]), "--capacities", str(capacities))

    here, there = run_plan(*source, "--on", "here"), run_plan(*source, "--on", "spark")
    assert there.assignment.keys() == here.assignment.keys()
    assert len(there.brokers) == len(here.brokers)

    # Which of the two plans, if the user leaves it open.
    clients = len(here.assignment)
    given = (traces[1], capacities, "local[*]")
    assert plan_trace_on_spark(*given, AllocationSettings(), None, clients + 1) is None
    assert plan_trace_on_spark(*given, AllocationSettings(algorithm="fbf"), None, 1) is None
    found = plan_trace_on_spark(*given, AllocationSettings(), None, clients)
    assert found is not None
    assert replace(found[0], seconds=there.seconds) == there

    folder = tmp_path / "assigned"
    asked = run_plan(*source, "--on", "spark", "--assignment", str(folder))
    assert asked.assignment == {}
    rows = pq.read_table(folder).to_pylist()
    assert {row["subscriber"]: row["broker"] for row in rows} == there.assignment
    refused = CliRunner().invoke(
        app, ["croc", "plan", *source, "--on", "spark", "--assignment", str(folder)]
    )
    assert isinstance(refused.exception, UsageError)
    assert "it exists; name a folder that does not" in str(refused.exception)


def run_plan(*arguments: str) -> AllocationPlan:
    result = CliRunner().invoke(app, ["croc", "plan", *arguments, "--json"], catch_exceptions=False)
    return msgspec.json.decode(result.stdout, type=AllocationPlan)


def test_a_file_of_profiles_is_planned_on_spark_and_names_its_subscriptions(
    spark: SparkSession, tmp_path: Path
) -> None:
    assert spark
    document = gathered(
        [subscription("s1", "1", client="a"), subscription("s2", "01", client="a"),
         subscription("s3", "1")],
    )  # fmt: skip
    path = tmp_path / "profiles.json"
    path.write_bytes(msgspec.json.encode(document))
    plan = run_plan("--profiles", str(path), "--on", "spark")
    assert plan.assignment == make_plan(document, SETTINGS).assignment
    assert plan.assignment.keys() == {"s1", "s2", "s3"}


def test_an_assignment_apart_from_the_plan_is_for_spark() -> None:
    refused = CliRunner().invoke(app, ["croc", "plan", "--trace", ".", "--assignment", "new"])
    assert isinstance(refused.exception, UsageError)
    assert "add --on spark" in str(refused.exception)
