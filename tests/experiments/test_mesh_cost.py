"""`mesh-cost`: covering sets and evaluations are counted right, and each claim can fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from godwit.content.filters import Filter
from godwit.content.values import Record
from godwit.experiments.mesh import runs as mesh_runs
from godwit.experiments.mesh_cost import runs
from godwit.experiments.mesh_cost.experiment import EXPERIMENT
from godwit.experiments.mesh_cost.measures import MEASURES, measure
from godwit.lab import plots
from godwit.lab.declaration import Case, Measured, Results
from godwit.lab.metrics.reading import read_trace
from godwit.lab.rules import Verdict

TINY: Case = {"brokers": 15, "dataset": "DT-C", "subscriptions": 60, "rate": 600, "strategy": "S2"}


def test_more_links_fragment_covering_sets(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "PUBLISHING_S", 10.0)
    monkeypatch.setattr(mesh_runs, "PERIOD_S", 2.0)
    found = []
    for fanout in (3, 15):
        case: Case = {**TINY, "fanout": fanout}
        runs.run(case, 1, tmp_path / str(fanout))
        found.append(measure(read_trace(spark, tmp_path / str(fanout)), case))
    few, many = found
    assert few.keys() == MEASURES.keys()
    assert few["links"] < many["links"]
    assert 0 < few["covering_set"] < many["covering_set"]
    assert 0 < few["evaluations"] < many["evaluations"]


def test_fragmentation_of_the_paper() -> None:
    """Test vector 11: s1 covers s2, and s2 covers s3."""
    s1, s2, s3 = (Filter.parse(text) for text in ("x > 1", "x > 2", "x > 3"))
    assert runs.front_of([s3, s2, s1]) == [s1]
    assert [*runs.front_of([s1]), *runs.front_of([s2, s3])] == [s1, s2]


def test_evaluation_ends_with_the_first_predicate_that_is_not_satisfied() -> None:
    wanted = Filter.parse("topic = 't1' and x > 0.5 and y > 0.5")
    cases: tuple[tuple[Record, int], ...] = (
        ({"topic": "t2", "x": 0.9, "y": 0.9}, 1),
        ({"topic": "t1", "x": 0.1, "y": 0.9}, 2),
        ({"topic": "t1", "x": 0.9, "y": 0.1}, 3),
        ({"topic": "t1", "x": 0.9, "y": 0.9}, 3),
        ({"x": 0.9}, 1),
    )
    for record, count in cases:
        assert runs.evaluations(wanted, record) == count


# -- claims ------------------------------------------------------------------------------------


def results(change: dict[str, float] | None = None, **where: object) -> Results:
    """Numbers that fulfil every claim, but for a change in some cases."""
    found = []
    for case in EXPERIMENT.scales["paper"].cases:
        steps = (int(case["fanout"]) - 5) / 5
        values = {
            "links": 5.0, "covering_set": 100 + 11 * steps, "evaluations": 300 + 90 * steps,
            "wom_ms": 0.2, "wst_ms": 5.0, "s0_us": 30.0, "s1_us": 31.0, "s2_us": 32.0,
        }  # fmt: skip
        applies = all(case[name] == value for name, value in where.items())
        found.append(Measured(case, 1, {**values, **((change or {}) if applies else {})}))
    return Results(found)


def test_what_the_paper_reports_fulfils_every_claim(tmp_path: Path) -> None:
    for claim in EXPERIMENT.claims:
        assert claim.judge(results()).verdict is not Verdict.NOT_REPRODUCED, claim.id
    for figure in EXPERIMENT.figures:
        plots.save(figure, results(), tmp_path / f"{figure.name}.png")
        assert (tmp_path / f"{figure.name}.png").stat().st_size > 5_000


@pytest.mark.parametrize(
    ("claim", "wrong"),
    [
        ("P12 WOM", results({"wom_ms": 0.9}, fanout=20)),
        ("P12 WST", results({"wst_ms": 19.0}, fanout=5)),
        ("P13", results({"s2_us": 36.0}, fanout=10)),
        ("P14 sets", results({"covering_set": 115.0}, fanout=10)),
        ("P14 evaluations", results({"evaluations": 420.0}, fanout=10)),
        ("P14", results({"covering_set": 90.0}, fanout=20)),
        ("P14", results({"evaluations": 350.0}, fanout=20)),
    ],
)
def test_a_claim_can_fail(claim: str, wrong: Results) -> None:
    judged = {each.id: each.judge(wrong).verdict for each in EXPERIMENT.claims}
    assert judged[claim] is Verdict.NOT_REPRODUCED
