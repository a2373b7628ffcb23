"""`grape-enterprise` and its kin: runs are measured right, and each claim can fail."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from godwit.experiments.grape_enterprise.experiment import EXPERIMENT as ENTERPRISE
from godwit.experiments.grape_random.experiment import EXPERIMENT as RANDOM
from godwit.experiments.grape_weights.experiment import EXPERIMENT as WEIGHTS
from godwit.experiments.placement.measures import measure
from godwit.experiments.placement.runs import SIZES, run
from godwit.experiments.placement_sampling.experiment import EXPERIMENT as SAMPLING
from godwit.lab.declaration import Case, Experiment, Measured, Results
from godwit.lab.metrics.reading import read_trace
from godwit.lab.rules import Verdict

SMALL: Case = {"brokers": 31, "fanout": 2, "mix": "enterprise", "x": 4}


def test_a_run_is_measured_in_its_last_minute(spark: SparkSession, tmp_path: Path) -> None:
    case: Case = {**SMALL, "policy": "grape-load"}
    run(case, 1, tmp_path)
    found = measure(read_trace(spark, tmp_path), case)

    size = SIZES[31]
    handled = [
        row
        for row in pq.read_table(tmp_path / "handled").to_pylist()
        if size.read_from_s <= row["time_s"] < size.until_s
    ]
    letters = sum(row["kind"] == "Letter" for row in handled)
    routing = sum(row["from_broker"] and row["kind"] != "Publication" for row in handled)
    total = sum(1 + row["messages_out"] for row in handled)
    assert letters > 0
    assert found.keys() == ENTERPRISE.measures.keys()
    assert found["messages_in_per_s_mean"] == pytest.approx(len(handled) / 60 / 31)
    assert found["overhead_share"] == pytest.approx(2 * routing / total)
    decisions = pq.read_table(tmp_path / "decisions").to_pylist()
    moved = [row for row in decisions if row["policy"] == "migration"]
    assert {row["policy"] for row in decisions} == {"grape", "migration"}
    assert found["moves"] == len(moved) >= 6
    pauses = [msgspec.json.decode(row["reason"])["paused_s"] for row in moved]
    assert found["paused_s_mean"] == pytest.approx(sum(pauses) / len(pauses))
    assert found["paused_s_max"] == max(pauses)
    assert found["moved_last_s"] == max(row["time_s"] for row in moved)
    first_s = {row["subject"]: row["time_s"] for row in reversed(moved)}
    assert found["moved_first_s_mean"] == pytest.approx(sum(first_s.values()) / len(first_s))
    asked = [msgspec.json.decode(row["reason"]) for row in decisions if row["action"] == "asked"]
    assert found["moved_hops_mean"] == sum(each["hops"] for each in asked) / len(asked)
    assert found["selection_s_max"] == max(each["selection_s"] for each in asked) > 0
    assert found["advertisements_per_hop"] == 2
    assert found["paused_hops_correlation"] > 0.9


def test_policies_play_the_same_and_a_static_tree_moves_nobody(
    spark: SparkSession, tmp_path: Path
) -> None:
    found = {}
    for policy in ("static", "pop"):
        case: Case = {**SMALL, "policy": policy}
        run(case, 2, tmp_path / policy)
        found[policy] = measure(read_trace(spark, tmp_path / policy), case)

    static, pop = found["static"], found["pop"]
    assert (static["moves"], static["homes"], static["overhead_share"]) == (0, 0, 0)
    assert pop["moves"] > 0
    # One or two are on their way when the minute begins, or ends, and take longer without.
    assert pop["deliveries"] == pytest.approx(static["deliveries"], rel=0.01)
    assert pop["hops_mean"] < static["hops_mean"]


def test_a_case_says_how_much_is_seen_before_a_decision_and_what_counts(
    spark: SparkSession, tmp_path: Path
) -> None:
    found = {}
    for threshold in (10, 5_000):
        case: Case = {**SMALL, "policy": "grape-delay", "weight": 25, "threshold": threshold}
        run(case, 1, tmp_path / str(threshold))
        found[threshold] = measure(read_trace(spark, tmp_path / str(threshold)), case)

    assert found[10]["moves"] > found[5_000]["moves"] == 0
    assert found[10]["moved_first_s_mean"] < 60
    reasons = [
        msgspec.json.decode(row["reason"])
        for row in pq.read_table(tmp_path / "10" / "decisions").to_pylist()
        if row["action"] == "asked"
    ]
    assert {(each["primary"], each["weight_percent"]) for each in reasons} == {("delay", 25)}


# -- claims --------------------------------------------------------------------------------------


def values(case: Case, experiment: Experiment) -> dict[str, float]:
    """Numbers that fulfil every claim."""
    policy, x = str(case["policy"]), int(case["x"])
    if experiment is WEIGHTS:
        return weighted(case)
    if experiment is SAMPLING:
        return sampled(case)
    if experiment is RANDOM:
        same = {"static": 10.0, "pop": 15.0, "grape-load": 10.0, "grape-delay": 10.0}[policy]
        overhead = {"static": 0.0, "pop": 0.5, "grape-load": 0.04, "grape-delay": 0.04}[policy]
        output = {"static": 0.99, "pop": 1.0, "grape-load": 1.0, "grape-delay": 1.0}[policy]
        delay = {"static": 1.0, "pop": 0.95, "grape-load": 1.0, "grape-delay": 1.0}[policy]
        return {
            "messages_per_s_mean": same, "input_utilisation_mean": 1.0,
            "output_utilisation_mean": output, "hops_mean": 3.0, "delay_s_mean": delay,
            "overhead_share": overhead,
        }  # fmt: skip
    is_large = int(case["brokers"]) == 127
    if policy == "static":
        load, hops, delay, overhead = 10.0, 6.0, 10.0, 0.0
    elif policy == "grape-load":
        load, hops, delay, overhead = 1.4, 4.0, 11.0, 0.15
    elif policy == "grape-delay":
        load, hops, overhead = 3.0, 2.0, 0.10
        delay = 5.0 if is_large else {1: 3.5, 2: 4.0, 63: 3.4}.get(x, 3.15)
    else:
        load, hops, overhead = 1.45, 3.0, 0.31
        delay = 7.0 if is_large else {2: 4.1}.get(x, 3.6)
    if case["fanout"] == 4 and policy != "static":
        load, delay = 2 * load, 2 * delay if policy == "grape-delay" else delay
    long, many = 2 / int(case["fanout"]), 1 + x / 100
    return {
        "messages_per_s_mean": load, "input_utilisation_mean": load, "hops_mean": hops,
        "output_utilisation_mean": load, "delay_s_mean": delay, "overhead_share": overhead,
        "messages_in_per_s_mean": load, "homes": 7.0, "deliveries": 100.0, "moves": 5.0,
        "selection_s_mean": long * many, "paused_s_mean": long * many, "paused_s_max": 1.0,
        "moved_hops_mean": 4.0, "paused_hops_correlation": 0.95, "advertisements_per_hop": 2.0,
        "selection_hops_correlation": 0.95 if policy == "pop" else 0.2,
    }  # fmt: skip


def weighted(case: Case) -> dict[str, float]:
    towards_load = float(case["weight"]) / 100
    if case["policy"] == "grape-delay":
        towards_load = 1.0 - towards_load
    if case["mix"] == "random":
        towards_load = 0.5
    is_load_100 = (case["policy"], case["weight"]) == ("grape-load", 100)
    is_delay_1 = (case["policy"], case["weight"]) == ("grape-delay", 1)
    high, low = 2.0 + towards_load, 3.0 - towards_load
    return {
        "messages_per_s_mean": low, "input_utilisation_mean": low, "output_utilisation_mean": low,
        "hops_mean": high, "delay_s_mean": high, "overhead_share": 0.1,
        "selection_s_mean": 1.0 if is_load_100 else 3.0 if is_delay_1 else 2.0,
    }  # fmt: skip


def sampled(case: Case) -> dict[str, float]:
    threshold, is_pop = int(case["threshold"]), case["policy"] == "pop"
    best = 50 if is_pop else 400
    return {
        "messages_per_s_mean": 1.0 + abs(threshold - best) / 1e4,
        "delay_s_mean": 1.0 + 1.0 / threshold,
        "overhead_share": threshold / 1e4 if is_pop else 1.0 / threshold,
        "moved_first_s_mean": 100.0 + threshold / 10,
        "moves": 0.0 if threshold == 12_800 else 5.0,
    }


def results(
    experiment: Experiment, change: dict[str, float] | None = None, **where: object
) -> Results:
    runs = []
    for case in experiment.scales["paper"].cases:
        for seed in (1, 2):
            applies = all(
                {**case, "seed": seed}.get(name) == value for name, value in where.items()
            )
            changed = (change or {}) if applies else {}
            runs.append(Measured(case, seed, {**values(case, experiment), **changed}))
    return Results(runs)


ALL = (ENTERPRISE, RANDOM, WEIGHTS, SAMPLING)


@pytest.mark.parametrize("experiment", ALL, ids=lambda each: each.name)
def test_every_claim_can_hold(experiment: Experiment) -> None:
    for claim in experiment.claims:
        verdict = claim.judge(results(experiment)).verdict
        assert verdict in (Verdict.REPRODUCED, Verdict.EXCEEDED), claim.id
        assert claim.rule.text


@pytest.mark.parametrize(
    ("claim", "change", "where"),
    [
        ("G1 POP", {"input_utilisation_mean": 5.0}, {"policy": "pop"}),
        ("G1 GRAPE", {"input_utilisation_mean": 5.0}, {"policy": "grape-load"}),
        ("G2 POP", {"messages_per_s_mean": 5.0}, {"policy": "pop"}),
        ("G2 GRAPE", {"messages_per_s_mean": 5.0}, {"policy": "grape-load"}),
        ("G2 POP, in", {"messages_in_per_s_mean": 5.0}, {"policy": "pop"}),
        ("G2 GRAPE, in", {"messages_in_per_s_mean": 5.0}, {"policy": "grape-load"}),
        ("G3 POP", {"delay_s_mean": 6.0}, {"policy": "pop"}),
        ("G3 GRAPE", {"delay_s_mean": 6.0}, {"policy": "grape-delay"}),
        ("G4", {"messages_per_s_mean": 1.0}, {"policy": "pop", "x": 16, "seed": 2}),
        ("G5", {"homes": 8.0}, {"policy": "pop", "x": 1, "seed": 1}),
        ("G6", {"output_utilisation_mean": 10.0}, {"policy": "grape-delay", "x": 16}),
        ("G7 hops", {"hops_mean": 1.0}, {"policy": "grape-load", "x": 4, "seed": 2}),
        ("G7 cluster", {"delay_s_mean": 9.0}, {"policy": "grape-load", "brokers": 127}),
        ("G8", {"delay_s_mean": 1.0}, {"policy": "pop", "brokers": 63}),
        ("G9", {"messages_per_s_mean": 1.0}, {"policy": "grape-delay", "x": 63}),
        ("G10", {"delay_s_mean": 2.0}, {"policy": "grape-delay", "brokers": 127}),
        ("G11", {"delay_s_mean": 3.0}, {"policy": "grape-delay", "brokers": 63, "x": 2}),
        ("G12", {"hops_mean": 7.0}, {"policy": "pop"}),
        ("G13", {"overhead_share": 0.1}, {"policy": "pop", "x": 4, "seed": 2}),
        ("G14 POP", {"overhead_share": 0.5}, {"policy": "pop", "x": 4}),
        ("G14 GRAPE", {"overhead_share": 0.2}, {"policy": "grape-delay", "x": 4}),
        (
            "G17 trends",
            {"messages_per_s_mean": 11.0},
            {"policy": "grape-load", "fanout": 4, "x": 4},
        ),
        ("G17 reductions", {"delay_s_mean": 2.0}, {"policy": "grape-delay", "fanout": 4}),
        ("G17 times", {"paused_s_mean": 9.0}, {"policy": "pop", "fanout": 4, "seed": 2}),
        ("G21 POP", {"selection_hops_correlation": 0.1}, {"policy": "pop", "x": 4}),
        ("G21 GRAPE", {"selection_s_mean": 3.0}, {"policy": "grape-load", "x": 2}),
        ("G23", {"paused_s_mean": 3.0}, {"policy": "grape-delay", "x": 2}),
        ("G24", {"paused_s_max": 2.0}, {"policy": "pop", "brokers": 127, "x": 4}),
        ("G25", {"advertisements_per_hop": 2.1}, {"policy": "pop", "x": 63}),
        ("G26", {"deliveries": 0.0}, {"policy": "static", "x": 63, "seed": 1}),
        ("G19 load", {"selection_s_mean": 1.0}, {"policy": "grape-load", "weight": 25}),
        ("G19 delay", {"selection_s_mean": 1.0}, {"policy": "grape-delay", "weight": 1}),
        ("G35", {"hops_mean": 4.0}, {"policy": "grape-load", "weight": 50, "seed": 2}),
        ("G36", {"delay_s_mean": 9.0}, {"policy": "grape-delay", "weight": 1}),
        ("G37 overhead", {"overhead_share": 0.2}, {"mix": "enterprise", "weight": 25}),
        ("G37 random", {"hops_mean": 9.0}, {"mix": "random", "weight": 1}),
        ("G15 POP", {"overhead_share": 0.7}, {"policy": "pop", "threshold": 100}),
        ("G15 GRAPE", {"overhead_share": 0.7}, {"policy": "grape-load", "threshold": 10}),
        ("G38 response", {"moved_first_s_mean": 1.0}, {"policy": "grape-load", "threshold": 100}),
        ("G38 overhead", {"overhead_share": 0.4}, {"policy": "grape-load", "threshold": 400}),
        ("G38 nobody", {"moves": 1.0}, {"policy": "grape-load", "threshold": 12_800}),
        ("G39 few", {"delay_s_mean": 1.0}, {"policy": "grape-load", "threshold": 10}),
        ("G39 best", {"messages_per_s_mean": 0.5}, {"policy": "grape-load", "threshold": 50}),
        ("G40 response", {"moved_first_s_mean": 1.0}, {"policy": "pop", "threshold": 100}),
        ("G40 overhead", {"overhead_share": 0.9}, {"policy": "pop", "threshold": 10}),
        ("G40 best", {"messages_per_s_mean": 0.5}, {"policy": "pop", "threshold": 400}),
        ("G28", {"hops_mean": 4.0}, {"policy": "grape-delay"}),
        ("G29", {"messages_per_s_mean": 5.0}, {"policy": "grape-load"}),
        ("G29 output", {"output_utilisation_mean": 0.9}, {"policy": "grape-load", "x": 16}),
        ("G30", {"overhead_share": 0.1}, {"policy": "grape-load", "x": 16}),
        ("G30 POP", {"overhead_share": 0.1}, {"policy": "pop"}),
        ("G31", {"hops_mean": 4.0}, {"policy": "pop"}),
        ("G31 messages", {"messages_per_s_mean": 10.0}, {"policy": "pop"}),
        ("G32", {"delay_s_mean": 2.0}, {"policy": "pop", "x": 63, "seed": 2}),
    ],
)
def test_every_claim_can_fail(
    claim: str, change: dict[str, float], where: dict[str, object]
) -> None:
    ((experiment, judged),) = (
        (each, of_it) for each in ALL for of_it in each.claims if of_it.id == claim
    )
    verdict = judged.judge(results(experiment, change, **where)).verdict

    assert verdict is Verdict.NOT_REPRODUCED
