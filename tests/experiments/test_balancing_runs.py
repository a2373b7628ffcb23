"""The experiments about load balancing: what is played, and that it is measured right."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pandas as pd
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from godwit.experiments.balance.balance_setup import cases
from godwit.experiments.balance.load_measures import bucket_s_of
from godwit.experiments.balance.measures import MEASURES, measure
from godwit.experiments.balance.platforms import PLATFORMS
from godwit.experiments.balance.runs import SETTINGS, run, settings_of
from godwit.experiments.balance.scenes import clients_of, scene_of
from godwit.experiments.offload_cost.measures import measure as measure_cost
from godwit.experiments.offload_cost.runs import run as run_cost
from godwit.lab.curves import drawn
from godwit.lab.declaration import Case, Measured, Results
from godwit.lab.measuring import checked
from godwit.lab.metrics.reading import read_trace
from godwit.workloads.timelines import Join, Leave, RateStep, attendance

(STAR,) = cases(("small-alike",))
(CHAIN,) = cases(("small",), overlay="chain")


# -- scenes --------------------------------------------------------------------------------------


def test_a_star_has_the_brokers_of_table_7_2() -> None:
    scene = scene_of({**STAR, "platform": "simulation"})

    assert scene.clusters == {"B0": ("B1", "B2", "B3", "B4")}
    assert scene.topology.links == {("B0", f"B{number}") for number in (1, 2, 3, 4)}
    assert (scene.publishers_at, scene.subscribers_at) == ("B0", "B1")
    assert scene.resources["B3"].cpu_speed == 400
    assert scene.resources["B3"].output_bandwidth_bytes_s == 250_000
    assert scene.resources["B0"].memory_bytes == 32e6
    assert (scene.joined_s, scene.step_s, scene.has_step) == (1010, 3000, True)
    assert scene.late_before == (2502.5, 3000)
    assert scene.late_after == (3750, 4000)


def test_a_chain_has_the_clusters_of_table_7_4() -> None:
    scene = scene_of({**CHAIN, "platform": "cluster"})

    assert list(scene.clusters) == ["B10", "B20", "B30", "B40"]
    assert scene.clusters["B30"] == ("B31", "B32")
    assert ("B20", "B30") in scene.topology.links
    assert scene.topology.is_tree
    assert (scene.publishers_at, scene.subscribers_at) == ("B10", "B11")
    slower = scene.resources["B11"].cpu_speed / scene.resources["B42"].cpu_speed
    assert slower == pytest.approx((1 + 3) / (1 + 1)), "delay factors are added: 1x and 3x"
    lines = [scene.resources[name].output_bandwidth_bytes_s for name in ("B12", "B42")]
    assert lines[0] / lines[1] == pytest.approx(12 / 5)


@pytest.mark.parametrize("case", [STAR, CHAIN], ids=["star", "chain"])
def test_brokers_of_a_quarter_of_the_simulation_are_as_busy(case: Case) -> None:
    whole, quarter = (scene_of({**case, "platform": name}) for name in ("simulation", "quarter"))
    subscribers = whole.setup.subscribers, quarter.setup.subscribers

    assert subscribers == (2000, 500)
    assert quarter.edges == whole.edges
    for edge in whole.edges:
        full, fourth = whole.resources[edge], quarter.resources[edge]
        assert fourth.output_bandwidth_bytes_s * 4 == full.output_bandwidth_bytes_s
        assert fourth.memory_bytes * 4 == full.memory_bytes
        for share in (0.1, 0.5):
            delays_s = [
                each.matching_delay_s(round(share * count))
                for each, count in zip((full, fourth), subscribers, strict=True)
            ]
            assert delays_s[0] == pytest.approx(delays_s[1])


def test_brokers_that_are_added_are_equal_except_on_planetlab() -> None:
    alike = scene_of({**STAR, "platform": "simulation", "edges": 9})
    mixed = scene_of({**STAR, "platform": "planetlab", "edges": 6})

    assert len(alike.edges) == 9
    assert len({alike.resources[name] for name in alike.edges}) == 1
    assert [mixed.resources[name] for name in mixed.edges] == [
        *PLATFORMS["planetlab"].edges, *PLATFORMS["planetlab"].edges[:2],
    ]  # fmt: skip
    assert not alike.has_step
    assert alike.late_before == alike.late_after == (2127.5, 2500)


def test_clients_join_one_broker_and_half_of_the_publishers_double() -> None:
    scene = scene_of(STAR)
    workload, timeline = clients_of(scene, Random(1))

    found = attendance(timeline)
    assert found.joins_by_broker == {"B1": 150}
    assert {publisher.at for publisher in workload.publishers} == {"B0"}
    assert max(step.at_s for step in timeline if isinstance(step, Join)) <= 300
    steps = [step for step in timeline if isinstance(step, RateStep)]
    assert (len(steps), {step.at_s for step in steps}) == (5, {750.0})


@pytest.mark.parametrize(("joins", "brokers"), [("grouped", 1), ("individual", 4)])
def test_churn_joins_all_edge_brokers(joins: str, brokers: int) -> None:
    scene = scene_of({**STAR, "platform": "homogeneous", "joins": joins})
    _, timeline = clients_of(scene, Random(1))

    first_minute = {
        step.subscriber.at for step in timeline if isinstance(step, Join) and step.at_s < 60
    }
    assert len(first_minute) == brokers
    assert attendance(timeline).joins_by_broker.keys() == {"B1", "B2", "B3", "B4"}
    assert attendance(timeline).joins == 60 * 45
    assert any(isinstance(step, Leave) for step in timeline)
    assert not any(isinstance(step, RateStep) for step in timeline)


def test_a_case_overrides_table_7_1() -> None:
    assert settings_of(STAR).press_samples == 50
    assert settings_of({**STAR, "press_samples": 10}).press_samples == 10
    assert settings_of({**STAR, "settings": "adaptive"}).pie == "adaptive"
    assert settings_of({**STAR, "algorithm": "random"}).algorithm == "random"
    for name in SETTINGS:
        settings_of({**STAR, "settings": name})


# -- measures of a star --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def star(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("star")
    run(STAR, 1, folder)
    return folder


@pytest.fixture(scope="module")
def found(star: Path, spark: SparkSession) -> dict[str, float]:
    return measure(read_trace(spark, star), STAR)


def table(folder: Path, name: str) -> pd.DataFrame:
    return pq.read_table(folder / name).to_pandas()


def reasons(decisions: pd.DataFrame, action: str) -> list[dict[str, Any]]:
    some = decisions[decisions.action == action]
    return [{**msgspec.json.decode(row.reason), "time_s": row.time_s} for row in some.itertuples()]


def test_loads_are_those_of_the_gauges(star: Path, found: dict[str, float]) -> None:
    gauges = table(star, "gauges")
    edges = gauges[gauges.broker != "B0"]
    late = edges[(edges.time_s > 637.5) & (edges.time_s <= 750)].groupby("broker")
    outputs = late.output_utilisation.mean()
    assert found["output_mean_before"] == pytest.approx(outputs.mean())
    assert found["output_max_before"] == pytest.approx(outputs.max())
    assert found["output_gap_before"] == pytest.approx(outputs.max() - outputs.min())
    delays = late.matching_delay_s.mean() / 0.1
    assert found["matching_gap_before"] == pytest.approx(delays.max() - delays.min())
    bound = late.bytes_out_per_s.mean().sum() / (4 * 0.12 * 125_000)
    assert found["distance_before"] == pytest.approx(outputs.max() / bound - 1)
    first = edges[(edges.broker == "B1") & (edges.time_s <= 300)]
    overloaded = (first.output_utilisation > 0.95) | (first.input_utilisation > 0.95)
    assert found["overloaded_first_s"] == 10 * overloaded.sum()
    after = edges[(edges.time_s > 1087.5) & (edges.time_s <= 1200)]
    clients = after.groupby("broker").clients.mean()
    assert found["clients_B3"] == pytest.approx(clients["B3"])
    assert clients.sum() == pytest.approx(150, abs=5)


def test_sessions_are_those_of_the_decisions(star: Path, found: dict[str, float]) -> None:
    decisions = table(star, "decisions")
    ended = [r for r in reasons(decisions, "ended") if r["side"] == "offloader" and r["moved"]]
    moved = decisions[decisions.action == "moved"]
    began = {each["session"]: each for each in reasons(decisions, "session")}
    assert found["sessions"] == len(began)
    assert found["sessions_moving"] == len(ended) > 3
    assert found["moves"] == len(moved) > 20
    assert found["moves_before"] == (moved.time_s < 750).sum()
    assert found["session_moves_max"] == max(each["moved"] for each in ended)
    assert found["not_improving"] == 0
    before = [each["time_s"] for each in ended if began[each["session"]]["time_s"] < 750]
    assert found["converged_s"] == max(before)
    # After 1,200 s no client publishes.  Loads are averaged over 40 s.
    outcomes = [each for each in reasons(decisions, "achieved") if each["time_s"] <= 1200]
    assert found["outcomes"] == len(outcomes)
    assert 0 < found["outcomes_quiet"] < len(outcomes)
    quiet = [
        each["match_error"]
        for each in outcomes
        if (start_s := began[each["session"]]["time_s"] - 40) >= 300
        and not start_s <= 750 <= each["time_s"]
        and not began[each["session"]]["overloaded"]
    ]
    assert found["quiet_error_matching"] == pytest.approx(sum(quiet) / len(quiet))


def test_messages_are_counted_by_their_cause(star: Path, found: dict[str, float]) -> None:
    handled = table(star, "handled")
    assert bucket_s_of(scene_of(STAR)) == 20
    early = handled[handled.time_s < 300]
    is_overhead = (early.kind != "Publication") | early["class"].str.startswith("$")
    share = (1 + early[is_overhead].messages_out).sum() / (1 + early.messages_out).sum()
    assert found["overhead_joining"] == pytest.approx(share)
    late = handled[(handled.time_s >= 640) & (handled.time_s < 760)]
    pies = (late["class"] == "$LOCAL_PIE").sum()
    assert found["pie_stable_per_s"] == pytest.approx(pies / 120)
    assert found["migration_busy_per_s"] > 0
    assert found["coordination_busy_per_s"] > 0
    assert found["rate_ratio"] == pytest.approx(1.5, rel=0.01)


def test_delays_are_means_of_short_times(star: Path, found: dict[str, float]) -> None:
    delivered = table(star, "delivered")
    buckets = delivered[delivered.time_s < 1200].groupby(delivered.time_s // 20).delay_s.mean()
    assert found["delay_usual_s"] == pytest.approx(buckets.median())
    assert found["delay_peak_s"] == pytest.approx(buckets.max())
    assert found["delay_before_s"] == pytest.approx(buckets[(buckets.index >= 31.875)
                                                    & (buckets.index < 37.5)].mean())  # fmt: skip
    assert found["deliveries"] == (delivered.time_s < 1200).sum()


def test_curves_follow_the_gauges(star: Path, found: dict[str, float]) -> None:
    runs = Results([Measured(STAR, 1, found)])
    gauges = table(star, "gauges")
    b2 = gauges[(gauges.broker == "B2") & (gauges.time_s > 400) & (gauges.time_s <= 420)]
    assert dict(drawn(runs, "output_B2"))[20] == pytest.approx(b2.output_utilisation.mean())
    assert dict(drawn(runs, "clients_B2"))[20] == pytest.approx(b2.clients.mean())
    assert len(drawn(runs, "delay_s")) == 60
    assert len(drawn(runs, "overhead")) == 60


def test_all_measures_are_declared(found: dict[str, float]) -> None:
    assert found.keys() <= MEASURES.keys()
    listed = {name for name, each in MEASURES.items() if each.is_listed}
    missing = {name for name in listed - found.keys() if "cluster" not in name}
    assert missing == {
        "reached_s", "converged_after_reached_s", "global_sessions", "global_gap_start",
        "global_gap_end", "global_pie_hops_max",
    }  # fmt: skip


def test_the_same_seed_gives_the_same_run(star: Path, tmp_path: Path) -> None:
    run(STAR, 1, tmp_path)
    for name in ("decisions", "gauges"):
        assert pq.read_table(tmp_path / name) == pq.read_table(star / name)


# -- others --------------------------------------------------------------------------------------


def test_a_chain_is_measured_by_cluster(spark: SparkSession, tmp_path: Path) -> None:
    case: Case = {**CHAIN, "platform": "small-alike"}
    run(case, 1, tmp_path)
    values = measure(read_trace(spark, tmp_path), case)

    gauges = table(tmp_path, "gauges")
    scene = scene_of(case)
    start_s, end_s = scene.late_before
    late = gauges[(gauges.time_s > start_s) & (gauges.time_s <= end_s)]
    second = late[late.broker.isin(["B21", "B22"])]
    assert values["output_cluster_2"] == pytest.approx(second.output_utilisation.mean())
    last = gauges[gauges.broker.isin(["B41", "B42"]) & (gauges.clients > 0)]
    assert values["reached_s"] == (last.time_s.min() if len(last) else scene.until_s)
    assert values["global_sessions"] > 0
    assert values["global_gap_end"] < values["global_gap_start"]
    assert values["global_pie_hops_max"] == 1
    assert values["output_cluster_1"] > 0
    assert values.keys() <= MEASURES.keys()
    runs = Results([Measured(case, 1, values)])
    at = gauges[gauges.broker.isin(["B11", "B12"]) & (gauges.time_s > 400) & (gauges.time_s <= 420)]
    assert dict(drawn(runs, "clients_B10"))[20] == pytest.approx(at.clients.mean() * 2)


@pytest.mark.parametrize("algorithm", ["random", "none"])
def test_other_algorithms_run(algorithm: str, tmp_path: Path) -> None:
    case: Case = {**STAR, "algorithm": algorithm, "joins": "individual"}
    run(case, 1, tmp_path)

    decisions = table(tmp_path, "decisions")
    assert ("moved" in set(decisions.action)) is (algorithm == "random")


def test_one_decision_by_itself(spark: SparkSession, tmp_path: Path) -> None:
    from godwit.experiments.offload_cost.experiment import EXPERIMENT  # noqa: PLC0415

    memory: Case = {"study": "memory", "number": 300, "press_samples": 100}
    time: Case = {"study": "time", "number": 200, "press_samples": 50}
    values = []
    for number, case in enumerate((memory, time)):
        folder = tmp_path / str(number)
        run_cost(case, 1, folder)
        values.append(checked(EXPERIMENT, measure_cost(read_trace(spark, folder), case)))

    assert values[0] == {"press_bits": 300 * 100}
    assert values[1].keys() == {f"{n}_plan_s" for n in ("input", "match", "output", "random")}
    assert all(seconds > 0 for seconds in values[1].values())
