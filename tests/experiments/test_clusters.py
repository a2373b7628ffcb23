"""The experiments about clusters: runs are measured right, and each claim can fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from godwit.experiments import clusters_balancing, clusters_load, clusters_optimum
from godwit.experiments.clusters.measures import MEASURES, distribution, measure
from godwit.experiments.clusters.overlay_setups import (
    BALANCED,
    CLUSTERS,
    DHT,
    DHT_DIRECT,
    TREE,
)
from godwit.experiments.clusters.runs import run
from godwit.lab import plots
from godwit.lab.declaration import Case, Experiment, Measured, Results
from godwit.lab.metrics.reading import read_trace
from godwit.lab.rules import Verdict
from godwit.lab.runner import planned
from godwit.overlay.clusters.cluster_traffic import ClusterLoad

TINY: Case = {
    "brokers": 9,
    "clusters": 3,
    "ratio": 1 / 3,
    "topics": 4,
    "exponent": 0.0,
    "publications_per_s": 9.0,
    "threshold": 50.0,
    "adapting_s": 1.0,
    "measured_s": 4.0,
}


def test_all_overlays_are_measured_and_deliver_the_same(
    spark: SparkSession, tmp_path: Path
) -> None:
    found = {}
    for overlay in (CLUSTERS, TREE, DHT, BALANCED):
        case: Case = {**TINY, "overlay": overlay}
        folder = tmp_path / overlay
        run(case, 1, folder)
        measured = found[overlay] = measure(read_trace(spark, folder), case)
        listed = {name for name, each in MEASURES.items() if each.is_listed}
        assert listed <= measured.keys() <= MEASURES.keys()
        rows = [
            row
            for row in pq.read_table(folder / "handled").to_pylist()
            if row["kind"] == "Publication" and 11.0 <= row["time_s"] < 15.0
        ]
        messages = sum(row["from_broker"] + row["copies"] for row in rows)
        assert measured["load_mean"] == pytest.approx(messages / 4.0 / 9)
        assert measured["publications"] == sum(not row["from_broker"] for row in rows)
    digests = {each["deliveries_digest"] for each in found.values()}
    assert len(digests) == 1, "the same deliveries"
    # Each of 12 subscriptions goes to two mates.
    assert found[CLUSTERS]["subscriptions_sent"] == 24
    assert found[CLUSTERS]["hops_max"] <= 2


def test_a_hash_table_with_direct_links_takes_fewer(tmp_path: Path, spark: SparkSession) -> None:
    hops = []
    for overlay in (DHT, DHT_DIRECT):
        case: Case = {**TINY, "overlay": overlay, "brokers": 25}
        run(case, 1, tmp_path / overlay)
        hops.append(measure(read_trace(spark, tmp_path / overlay), case)["hops_max"])
    assert hops[0] > hops[1] == 2


def test_the_distribution_of_loads() -> None:
    found = distribution([10.0, 60.0, 70.0, 260.0])
    assert found["load_mean"] == 100
    assert (found["load_min"], found["load_max"]) == (10, 260)
    assert (found["fullest_bin"], found["fullest_bin_from"]) == (0.5, 50.0)
    assert found["above_250"] == 0.25
    assert found["load_top_tenth"] == 0.65
    assert [found[f"load@{n:03d}"] for n in range(4)] == [260, 70, 60, 10]
    assert distribution([9_999.0])["brokers_in_bin@011"] == 1


# -- claims ------------------------------------------------------------------------------------

Values = dict[str, float]


def load_values(case: Case) -> Values:
    """Numbers that fulfil every claim of `clusters-load`."""
    number = int(case["clusters"])
    cov = {CLUSTERS: 0.1 + number / 1e3, DHT: 0.5, DHT_DIRECT: 0.4, TREE: 2.0}
    load_max = {CLUSTERS: 50.0 + number, DHT: 100.0, DHT_DIRECT: 99.0, TREE: 300.0}
    overlay = str(case["overlay"])
    return {
        "load_cov": cov[overlay],
        "load_max": load_max[overlay],
        "load_mean": 40.0 + number,
        "hops_max": 2.0 if overlay == CLUSTERS else 9.0,
        "copies": 10.0 + number,
        "deliveries": 100.0,
        "deliveries_digest": 1.0,
    }


def balancing_values(case: Case) -> Values:
    """Numbers that fulfil every claim of `clusters-balancing`."""
    is_balanced = case["overlay"] == BALANCED
    n, rate = int(case["brokers"]), float(case["publications_per_s"])
    load = ClusterLoad(n, rate, 0.0, float(case["ratio"]))
    return {
        "publications": rate * float(case["measured_s"]),
        "load_mean": 2 * load.traffic(int(case["clusters"])) / n,
        "load_max": 160.0 if is_balanced else 400.0,
        "load_cov": 0.2 if is_balanced else 0.8,
        "fullest_bin": 0.9 if is_balanced else 0.78,
        "above_250": 0.0 if is_balanced else 0.11,
        "copies": 31.0 if is_balanced else 30.0,
        "hops_mean": 1.8,
        "hops_max": 4.0 if is_balanced else 2.0,
        "deliveries": 100.0,
        "deliveries_digest": 1.0,
    }


def optimum_values(case: Case) -> Values:
    """Traffic as the equation has it."""
    n, m, published = int(case["brokers"]), int(case["clusters"]), 240.0
    interested = round(float(case["ratio"]) * n)
    load = ClusterLoad(n, published, float(int(case["topics"]) * interested), interested / n)
    sent = load.subscriptions * (n / m - 1)
    return {
        "publications": published,
        "subscriptions_sent": sent,
        "copies": (load.traffic(m) - sent) / published,
    }


VALUES: list[tuple[Experiment, Callable[[Case], Values]]] = [
    (clusters_load.EXPERIMENT, load_values),
    (clusters_balancing.EXPERIMENT, balancing_values),
    (clusters_optimum.EXPERIMENT, optimum_values),
]


def results(
    experiment: Experiment, values: Callable[[Case], Values], change: Values, **where: object
) -> Results:
    runs = []
    for each in planned(experiment, "small"):
        is_changed = all(each.case.get(name) == value for name, value in where.items())
        numbers = values(each.case) | (change if is_changed else {})
        runs.append(Measured(each.case, each.seed, numbers))
    return Results(runs)


@pytest.mark.parametrize(("experiment", "values"), VALUES[:2], ids=["load", "balancing"])
def test_good_numbers_fulfil_every_claim(
    experiment: Experiment, values: Callable[[Case], Values]
) -> None:
    for claim in experiment.claims:
        verdict = claim.judge(results(experiment, values, {})).verdict
        assert verdict in (Verdict.REPRODUCED, Verdict.EXCEEDED), claim.id


@pytest.mark.parametrize(
    ("claim", "change", "where"),
    [
        ("C3 tree", {"load_cov": 0.3}, {"overlay": TREE, "ratio": 0.5}),
        ("C3 clusters", {"load_cov": 0.05}, {"overlay": DHT, "ratio": 0.1}),
        ("C3 direct", {"load_cov": 0.05}, {"overlay": DHT_DIRECT}),
        ("C4 load", {"load_mean": 99.0}, {"clusters": 2}),
        ("C4 even", {"load_cov": 0.4}, {"clusters": 2, "ratio": 0.7}),
        ("C10 tree", {"load_max": 10.0}, {"overlay": TREE}),
        ("C10 dht", {"load_max": 10.0}, {"overlay": DHT}),
        ("C11", {"hops_max": 3.0}, {"clusters": 5}),
        ("clusters-1", {"deliveries_digest": 2.0}, {"overlay": DHT, "ratio": 0.1}),
        ("clusters-2", {"copies": 99.0}, {"clusters": 1}),
        ("C5 low", {"fullest_bin": 0.5}, {"overlay": CLUSTERS, "ratio": 0.25}),
        ("C5 high", {"above_250": 0.0}, {"overlay": CLUSTERS, "ratio": 0.25}),
        ("C6 bin", {"fullest_bin": 0.7}, {"overlay": BALANCED, "ratio": 0.25}),
        ("C6 high", {"load_max": 250.0}, {"overlay": BALANCED, "ratio": 0.25}),
        ("C7", {"load_cov": 0.9}, {"overlay": BALANCED, "ratio": 0.75}),
        ("C8 copies", {"copies": 40.0}, {"overlay": BALANCED, "ratio": 0.5}),
        ("C8 hops", {"hops_mean": 2.5}, {"overlay": BALANCED, "ratio": 0.5}),
        ("C9", {"load_mean": 10.0}, {"overlay": CLUSTERS, "ratio": 0.5}),
        ("C11 handed over", {"hops_max": 5.0}, {"overlay": BALANCED}),
        ("clusters-3", {"deliveries": 99.0}, {"overlay": BALANCED}),
        ("clusters-4", {"copies": 40.0}, {"overlay": BALANCED}),
        ("C1", {"copies": 0.0}, {"partition": "popular", "clusters": 4}),
        ("C1 equation", {"subscriptions_sent": 0.0}, {"partition": "popular", "clusters": 4}),
        ("C2", {"copies": 99.0, "subscriptions_sent": 0.0}, {"partition": "popular"}),
    ],
)
def test_each_claim_can_fail(claim: str, change: Values, where: dict[str, object]) -> None:
    (found,) = [
        (each, experiment, values)
        for experiment, values in VALUES
        for each in experiment.claims
        if each.id == claim
    ]
    judged, experiment, values = found
    good = judged.judge(results(experiment, values, {})).verdict
    assert good in (Verdict.REPRODUCED, Verdict.EXCEEDED)
    changed = results(experiment, values, change, **where)
    assert judged.judge(changed).verdict is Verdict.NOT_REPRODUCED


@pytest.mark.parametrize(("experiment", "values"), VALUES, ids=["load", "balancing", "optimum"])
def test_every_figure_is_drawn(
    experiment: Experiment, values: Callable[[Case], Values], tmp_path: Path
) -> None:
    curves = distribution([10.0, 60.0, 70.0, 260.0])
    made = results(experiment, lambda case: curves | values(case), {})
    for figure in experiment.figures:
        path = tmp_path / f"{figure.name}.png"
        plots.save(figure, made, path)
        assert path.stat().st_size > 5_000
