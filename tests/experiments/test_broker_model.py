"""`broker-model`: its runs are measured right, and each claim can fail."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from godwit.broker.meters import WINDOW_S
from godwit.experiments.broker_model import claims as theory
from godwit.experiments.broker_model.experiment import EXPERIMENT
from godwit.experiments.broker_model.measures import measure
from godwit.experiments.broker_model.runs import CLIENTS, SERVICE_S, WARM_S, Setting, run
from godwit.lab import plots
from godwit.lab.declaration import Case, Measured, Results
from godwit.lab.metrics.reading import read_trace
from godwit.lab.rules import Verdict

BOTH: Case = {"bottleneck": "both", "arrivals": "poisson", "rho": 0.8, "publications": 8000}
OVERLOAD: Case = {"bottleneck": "output", "arrivals": "poisson", "rho": 1.5, "publications": 15000}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("both")
    run(BOTH, 1, folder)
    return folder


def test_a_run_is_measured_when_it_is_warm(spark: SparkSession, both: Path) -> None:
    found = measure(read_trace(spark, both), BOTH)
    end_s = Setting.of(BOTH).end_s
    handled, delivered, gauges = (
        [r for r in pq.read_table(both / name).to_pylist() if WARM_S <= r["time_s"] < end_s]
        for name in ("handled", "delivered", "gauges")
    )

    assert found.keys() == EXPERIMENT.measures.keys()
    assert len(handled) == pytest.approx(8000, rel=0.05)
    assert {row["size_bytes"] for row in handled} == {handled[0]["size_bytes"]}
    assert {round(row["matching_delay_s"], 12) for row in handled} == {SERVICE_S / 2}
    waits_s = [row["queue_delay_s"] for row in handled]
    assert found["input_wait_s"] == pytest.approx(sum(waits_s) / len(waits_s))
    last = [row for row in delivered if row["client"] == CLIENTS[-1]]
    waits_s = [row["delay_s"] - SERVICE_S for row in last]
    assert found["output_wait_s"] == pytest.approx(sum(waits_s) / len(waits_s))
    queued = [row["messages_queued"] for row in gauges]
    assert found["queued"] == pytest.approx(sum(queued) / len(queued))
    waiting = found["handled_per_s"] * (found["input_wait_s"] + found["output_wait_s"])
    assert found["queued"] == pytest.approx(waiting, rel=0.1), "Little's law"
    assert found["input_utilisation"] == pytest.approx(0.4, rel=0.05)
    assert found["output_utilisation"] == pytest.approx(0.8, rel=0.05)
    assert found["recursion_off"] < 1e-6


@pytest.mark.parametrize(
    ("table", "column"), [("handled", "queue_delay_s"), ("delivered", "delay_s")]
)
def test_one_wait_that_is_not_as_it_should_be_is_noticed(
    spark: SparkSession, both: Path, table: str, column: str
) -> None:
    trace = read_trace(spark, both)
    longer = F.when(F.col("sequence") == 123, F.col(column) + 1e-6).otherwise(F.col(column))
    wrong: dict[str, DataFrame] = {**trace, table: trace[table].withColumn(column, longer)}

    assert measure(wrong, BOTH)["recursion_off"] == pytest.approx(0.001, rel=0.01)


def test_an_output_that_cannot_keep_up(spark: SparkSession, tmp_path: Path) -> None:
    run(OVERLOAD, 1, tmp_path)
    found = measure(read_trace(spark, tmp_path), OVERLOAD)

    assert found["output_utilisation"] == pytest.approx(1.5, rel=0.05)
    assert found["queued_growth_per_s"] == pytest.approx(500.0, rel=0.1)
    assert found["recursion_off"] < 1e-6


def test_the_same_seed_gives_the_same_trace(tmp_path: Path) -> None:
    case: Case = {**BOTH, "rho": 0.1, "publications": 10}
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        run(case, seed, tmp_path / name)
    one, same, other = (pq.read_table(tmp_path / n / "handled") for n in ("one", "same", "other"))
    assert one == same
    assert one != other


def test_every_run_has_a_window_of_the_meters_to_itself() -> None:
    for scale in EXPERIMENT.scales.values():
        for case in scale.cases:
            assert Setting.of(case).end_s - WARM_S >= WINDOW_S, case


# -- claims ------------------------------------------------------------------------------------


def predicted(case: Case) -> dict[str, float]:
    setting, none = Setting.of(case), Results([])
    is_stable, is_random = float(case["rho"]) < 1, case["arrivals"] == "poisson"
    waits_s = {"input_wait_s": float(case["rho"]), "output_wait_s": 0.0, "input_wait_s_p99": 9.0}
    if is_stable and is_random:
        waits_s = {name: getattr(theory, name)(none, setting) for name in waits_s}
    elif is_stable:
        waits_s = dict.fromkeys(waits_s, 0.0)
    return {
        **waits_s,
        "queued": setting.rate_per_s * (waits_s["input_wait_s"] + waits_s["output_wait_s"]),
        "queued_growth_per_s": theory.growth_per_s(none, setting),
        "handled_per_s": setting.rate_per_s,
        "input_utilisation": theory.input_utilisation(none, setting),
        "output_utilisation": theory.output_utilisation(none, setting),
        "recursion_off": 1e-9,
    }


def results(changed: str = "", factor: float = 1.0, plus: float = 0.0, **where: object) -> Results:
    """Numbers that fulfil every claim, but for one measure in some cases, of the second seed."""
    runs = []
    for case in EXPERIMENT.scales["paper"].cases:
        applies = all(case[name] == value for name, value in where.items())
        values = predicted(case)
        runs.append(Measured(case, 1, values))
        if changed and applies:
            values = {**values, changed: values[changed] * factor + plus}
        runs.append(Measured(case, 2, values))
    return Results(runs)


def test_theory_fulfils_every_claim_and_can_be_drawn(tmp_path: Path) -> None:
    exact = results()
    for claim in EXPERIMENT.claims:
        assert claim.judge(exact).verdict is Verdict.REPRODUCED, claim.id
    for figure in EXPERIMENT.figures:
        plots.save(figure, exact, tmp_path / f"{figure.name}.png")
        assert (tmp_path / f"{figure.name}.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("claim", "wrong"),
    [
        ("model-1", results("recursion_off", plus=1e-5, bottleneck="both", rho=0.2)),
        ("model-2", results("input_wait_s", 1.12, rho=0.4)),
        ("model-3", results("input_wait_s", 0.78, rho=0.95)),
        ("model-4", results("input_wait_s_p99", 1.22, rho=0.8)),
        ("model-5", results("input_wait_s", plus=1e-6, arrivals="even", rho=0.9)),
        ("model-6", results("input_wait_s", 0.1, bottleneck="matching", rho=0.6)),
        ("model-7", results("queued", 1.22, bottleneck="output", rho=0.4)),
        ("model-8", results("input_utilisation", 1 / 1.2, bottleneck="matching", rho=1.2)),
        ("model-9", results("output_utilisation", 0.95, bottleneck="output", rho=1.1)),
        ("model-10", results("queued_growth_per_s", 0.88, arrivals="even", rho=1.5)),
        ("model-11", results("output_wait_s", 1.12, bottleneck="both", rho=0.6)),
        ("model-12", results("output_wait_s", plus=1e-6, bottleneck="matching", rho=1.2)),
    ],
)
def test_a_claim_fails_if_theory_is_missed(claim: str, wrong: Results) -> None:
    judged = {each.id: each.judge(wrong).verdict for each in EXPERIMENT.claims}
    assert judged[claim] is Verdict.NOT_REPRODUCED
