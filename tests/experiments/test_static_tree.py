"""`static-tree`: its runs are measured right, and each claim can fail."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from godwit.experiments.static_tree.claims import SUNK
from godwit.experiments.static_tree.experiment import EXPERIMENT
from godwit.experiments.static_tree.measures import EVER, delivery_digest, measure
from godwit.experiments.static_tree.runs import SIZES, run
from godwit.lab.declaration import Case, Measured, Results
from godwit.lab.metrics.reading import read_trace
from godwit.lab.rules import Verdict

SMALL: Case = {"driver": "simulated", "brokers": 31, "mix": "enterprise", "x": 4}
LIVE: Case = {"driver": "live", "brokers": 7, "mix": "random", "x": 4}
SIMULATED: Case = {**LIVE, "driver": "simulated"}


def test_a_run_is_measured_in_its_last_minute(spark: SparkSession, tmp_path: Path) -> None:
    run(SMALL, 3, tmp_path)
    found = measure(read_trace(spark, tmp_path), SMALL)

    size = SIZES[31]
    handled, delivered = (
        [
            row
            for row in pq.read_table(tmp_path / name).to_pylist()
            if size.read_from_s <= row["time_s"] < size.until_s
        ]
        for name in ("handled", "delivered")
    )
    assert found.keys() == EXPERIMENT.measures.keys() - {"digest"}
    assert found["deliveries"] == len(delivered)
    assert found["hops_max"] == max(row["hops"] for row in delivered)
    assert found["between_per_s"] * 60 == pytest.approx(sum(r["from_broker"] for r in handled))
    assert found["publications"] == sum(not row["from_broker"] for row in handled)
    assert found["sunk_share"] == len(delivered) / (found["publications"] * 40)
    assert found["overhead_share"] == 0
    assert 0 < found["input_utilisation_mean"] < found["input_utilisation_max"] < 1


def test_processes_deliver_what_the_simulator_delivers(spark: SparkSession, tmp_path: Path) -> None:
    measured = []
    for case in (LIVE, SIMULATED):
        folder = tmp_path / str(case["driver"])
        run(case, 1, folder)
        measured.append(Measured(case, 1, measure(read_trace(spark, folder), case)))

    live, simulated = (each.values for each in measured)
    assert live["deliveries"] == simulated["deliveries"] > 100
    assert live["digest"] == simulated["digest"]
    assert live["hops_mean"] == simulated["hops_mean"]
    # A digest that is always the same would prove nothing.
    delivered = read_trace(spark, tmp_path / "live")["delivered"]
    farther = (F.col("hops") + F.when(F.col("sequence") % 7 == 0, 1).otherwise(0)).cast("int")
    for changed in (
        delivered.exceptAll(delivered.limit(1)),
        delivered.unionAll(delivered.limit(1)),
        delivered.withColumn("hops", farther),
        delivered.withColumn("client", F.upper("client")),
    ):
        (row,) = delivery_digest({"delivered": changed}, EVER).collect()
        assert row["digest"] != live["digest"]


def results(change: dict[str, float] | None = None, **where: object) -> Results:
    """Numbers that fulfil every claim, but for a change in some cases."""
    runs = []
    for case in EXPERIMENT.scales["paper"].cases:
        x = int(case["x"])
        values = {
            "messages_per_s_mean": 10.0, "messages_per_s_max": 30.0, "between_per_s": 10.0 + x,
            "pure_forwarders": 20.0 - x / 127, "overhead_share": 0.0, "deliveries": 1000.0,
            "sunk_share": SUNK[str(case["mix"])], "hops_max": 4.0, "digest": 7.0,
            "input_utilisation_max": 0.5, "output_utilisation_max": 0.5,
        }  # fmt: skip
        for seed in (1, 2):
            applies = all(
                {**case, "seed": seed}.get(name) == value for name, value in where.items()
            )
            runs.append(Measured(case, seed, {**values, **((change or {}) if applies else {})}))
    return Results(runs)


def test_every_claim_can_hold() -> None:
    for claim in EXPERIMENT.claims:
        assert claim.judge(results()).verdict is Verdict.REPRODUCED, claim.id


@pytest.mark.parametrize(
    ("claim", "change", "where"),
    [
        ("tree-1", {"deliveries": 999.0}, {"driver": "live", "seed": 2}),
        ("tree-1", {"digest": 8.0}, {"driver": "live"}),
        ("tree-2", {"hops_max": 11.0}, {"brokers": 63, "x": 8, "seed": 1}),
        ("tree-3", {"sunk_share": 0.2}, {"brokers": 127, "mix": "random", "x": 2}),
        ("tree-4", {"between_per_s": 200.0}, {"brokers": 127, "x": 1, "mix": "enterprise"}),
        ("tree-5", {"between_per_s": 11.0}, {"brokers": 63, "x": 8, "mix": "random"}),
        ("tree-6", {"pure_forwarders": 20.0}, {"brokers": 63, "x": 63, "seed": 2}),
        ("tree-7", {"messages_per_s_max": 19.0}, {"brokers": 63, "x": 16, "seed": 2}),
        ("tree-8", {"overhead_share": 1e-9}, {"brokers": 127, "x": 16, "seed": 1}),
        ("tree-9", {"output_utilisation_max": 1.0}, {"brokers": 127, "x": 127, "seed": 1}),
    ],
)
def test_every_claim_can_fail(
    claim: str, change: dict[str, float], where: dict[str, object]
) -> None:
    (judged,) = (each for each in EXPERIMENT.claims if each.id == claim)

    assert judged.judge(results(change, **where)).verdict is Verdict.NOT_REPRODUCED
