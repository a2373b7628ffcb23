"""`mesh-throughput`, `mesh-congestion`: limits hold, and each claim can fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from godwit.experiments import EXPERIMENTS
from godwit.experiments.mesh import limited, runs
from godwit.lab import plots
from godwit.lab.declaration import Case, Measured, Results
from godwit.lab.metrics.reading import read_trace
from godwit.lab.rules import Verdict

TINY: Case = {
    "brokers": 15, "dataset": "DT2", "subscriptions": 60, "rate": 9000, "fanout": 35,
}  # fmt: skip


def test_what_an_engine_cannot_take_is_not_delivered(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "WARM_UP_S", 5.0)
    monkeypatch.setattr(runs, "MEASURED_S", 5.0)
    monkeypatch.setattr(runs, "PERIOD_S", 2.0)
    found = {}
    for strategy, limit in (("S0", "none"), ("S0", "engine"), ("S2", "engine")):
        case: Case = {**TINY, "strategy": strategy, "limit": limit}
        folder = tmp_path / f"{strategy} {limit}"
        limited.run(case, 1, folder)
        found[strategy, limit] = limited.measure(read_trace(spark, folder), case)
    everything, tree, mesh = found.values()
    assert everything.keys() == limited.MEASURES.keys()
    assert tree["delivered"] < 0.9 * everything["delivered"]
    assert tree["delivered"] < mesh["delivered"]
    assert everything["delay_s_mean"] < tree["delay_s_mean"]


# -- claims ------------------------------------------------------------------------------------

#: Deliveries by strategy and limit: of a fanout of 5, and what a larger one adds.
DELIVERED = {
    ("S0", "engine"): (1000.0, 0.0), ("S2", "engine"): (1500.0, 25.0),
    ("SH", "engine"): (1400.0, 20.0),
    ("S0", "uplink"): (900.0, 0.0), ("S2", "uplink"): (1000.0, 0.0),
    ("SH", "uplink"): (1100.0, 0.0),
    ("S0", "none"): (2000.0, 0.0), ("S0", "10 KB/s"): (1500.0, 0.0),
    ("S1", "10 KB/s"): (1999.0, 0.0), ("S2", "10 KB/s"): (1999.0, 0.0),
}  # fmt: skip


def results(name: str, change: dict[str, float] | None = None, **where: object) -> Results:
    """Numbers that fulfil every claim, but for a change in some cases."""
    found = []
    for case in EXPERIMENTS[name].scales["paper"].cases:
        base, per_link = DELIVERED[str(case["strategy"]), str(case["limit"])]
        count = base + per_link * (float(case["fanout"]) - 5)
        if case["dataset"] == "DT5" and case["limit"] != "none":
            count *= 0.8
        values = {
            "publications": 1000.0, "delivered": count, "pure_forwards": 10.0, "delay_s_mean": 1.0,
        }  # fmt: skip
        applies = all(case[parameter] == value for parameter, value in where.items())
        found.append(Measured(case, 1, {**values, **((change or {}) if applies else {})}))
    return Results(found)


@pytest.mark.parametrize("name", ["mesh-throughput", "mesh-congestion"])
def test_what_the_paper_reports_fulfils_every_claim(name: str, tmp_path: Path) -> None:
    for claim in EXPERIMENTS[name].claims:
        assert claim.judge(results(name)).verdict is not Verdict.NOT_REPRODUCED, claim.id
    for figure in EXPERIMENTS[name].figures:
        plots.save(figure, results(name), tmp_path / f"{figure.name}.png")
        assert (tmp_path / f"{figure.name}.png").stat().st_size > 5_000


@pytest.mark.parametrize(
    ("name", "claim", "wrong", "where"),
    [
        ("mesh-throughput", "P15", 900.0, {"limit": "engine", "strategy": "S2", "fanout": 15}),
        ("mesh-throughput", "P16", 1700.0, {"limit": "engine", "strategy": "S2"}),
        ("mesh-throughput", "P17", 3000.0, {"limit": "engine", "strategy": "SH", "dataset": "DT2"}),
        ("mesh-throughput", "P18", 1000.0, {"limit": "uplink", "strategy": "SH"}),
        ("mesh-congestion", "P19 DT4", 1999.0, {"strategy": "S0", "dataset": "DT4"}),
        ("mesh-congestion", "P19 DT4", 1900.0, {"strategy": "S1", "dataset": "DT4"}),
        ("mesh-congestion", "P19 DT5", 1100.0, {"strategy": "S2", "dataset": "DT5"}),
        ("mesh-congestion", "P19 DT5", 1999.0, {"strategy": "S1", "dataset": "DT5"}),
    ],
)
def test_a_claim_can_fail(name: str, claim: str, wrong: float, where: dict[str, object]) -> None:
    changed = results(name, {"delivered": wrong}, **where)
    judged = {each.id: each.judge(changed).verdict for each in EXPERIMENTS[name].claims}
    assert judged[claim] is Verdict.NOT_REPRODUCED
