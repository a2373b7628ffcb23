"""`covering`: its runs are measured right, and each claim can fail."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from godwit.experiments.covering.claims import NAMED, THRESHOLDS
from godwit.experiments.covering.experiment import EXPERIMENT
from godwit.experiments.covering.measures import crossings_of, measure, records
from godwit.experiments.covering.runs import MIXES, TEMPLATE_MIXES, run, topology_of, workload_of
from godwit.lab import plots
from godwit.lab.declaration import Case, Measured, Results
from godwit.lab.metrics.reading import read_trace
from godwit.lab.rules import Verdict
from godwit.overlay.topology import topology
from godwit.workloads.stock_templates import TEMPLATES

TINY: Case = {"mix": "LS3", "brokers": 7, "publishers": 3, "subscribers_per_publisher": 20}


def test_a_run_with_and_without_covering(spark: SparkSession, tmp_path: Path) -> None:
    measured = []
    for is_covering in (True, False):
        case: Case = {**TINY, "covering": is_covering}
        folder = tmp_path / str(is_covering)
        run(case, 1, folder)
        found = measure(read_trace(spark, folder), case)
        measured.append(found)
        handled = pq.read_table(folder / "handled").to_pylist()
        sent = [row for row in handled if row["from_broker"] and row["kind"] == "Subscription"]
        assert found.keys() == EXPERIMENT.measures.keys()
        assert found["forwarded"] == len(sent)
        assert found["links_told"] == len({(row["came_from"], row["broker"]) for row in sent})
        assert found["stored"] == 60 + found["forwarded"], "everybody had joined"
        assert found["stored_mean"] == found["stored"] / 7
        assert found["stored_mean"] < found["stored_max"] <= 60
        assert found["deliveries"] == pq.read_table(folder / "delivered").num_rows > 0

    covering, without = measured
    assert covering["forwarded"] < without["forwarded"]
    for name in ("deliveries", "deliveries_digest", "publications_sent", "crossings"):
        assert covering[name] == without[name]


def test_the_same_seed_gives_the_same_trace(tmp_path: Path) -> None:
    case: Case = {**TINY, "subscribers_per_publisher": 3, "covering": True}
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        run(case, seed, tmp_path / name)
    one, same, other = (pq.read_table(tmp_path / n / "handled") for n in ("one", "same", "other"))
    assert one == same
    assert one != other


@pytest.mark.parametrize("mix", MIXES)
def test_every_mix_has_as_many_subscribers(mix: str) -> None:
    case: Case = {**TINY, "mix": mix}
    workload = workload_of(case, topology_of(case), 1)
    assert len(workload.subscribers) == 60
    named = ["symbol" in who.filter.constraints for who in workload.subscribers]
    assert all(named) == (mix in NAMED)


@pytest.mark.parametrize("mix", list(TEMPLATE_MIXES)[2:])
def test_a_template_alone_is_what_its_name_says(mix: str) -> None:
    workload = workload_of({**TINY, "mix": mix}, topology_of(TINY), 1)
    wanted = {"class", *mix.replace(",", "").rstrip(" <>").split()}
    assert all(set(who.filter.constraints) == wanted for who in workload.subscribers)


def test_mixes_of_templates_differ_in_what_is_wanted_only() -> None:
    mixes = [mix for mix in TEMPLATE_MIXES if mix != "LS3 less class"]  # A class filter is rare.
    workloads = [workload_of({**TINY, "mix": mix}, topology_of(TINY), 1) for mix in mixes]
    assert len({workload.publishers for workload in workloads}) == 1
    assert len({tuple((s.name, s.at) for s in w.subscribers) for w in workloads}) == 1
    assert len({tuple(s.filter for s in w.subscribers) for w in workloads}) == len(workloads)


def test_ls3_has_the_shares_of_the_thesis() -> None:
    up_to = 0.0
    for weight, template in zip(TEMPLATE_MIXES["LS3"], TEMPLATES, strict=True):
        up_to += weight
        assert template[0] == pytest.approx(up_to)


def test_where_subscriptions_cross() -> None:
    """A - B - C with a D at B.  X is published at A, Y at D."""
    tree = topology("ABCD", [("A", "B"), ("B", "C"), ("B", "D")])
    subscribers = [("X", "C"), ("X", "C"), ("X", "B"), ("X", "A"), ("Y", "A")]
    assert crossings_of(tree, subscribers, {"X": "A", "Y": "D"}) == {
        ("X", "C", "B"): 2,
        ("X", "B", "A"): 3,
        ("Y", "A", "B"): 1,
        ("Y", "B", "D"): 1,
    }


def test_how_many_are_wider_than_all_before() -> None:
    orders = list(permutations(range(5)))
    wider = sum(
        all(earlier > each for earlier in order[:place])
        for order in orders
        for place, each in enumerate(order)
    )
    assert records(5) == pytest.approx(wider / len(orders))


# -- claims ------------------------------------------------------------------------------------

FORWARDED = {"LS3": 200.0, "LS3 less class": 300.0, "symbol": 100.0, "volume >": 90.0,
             "class": 20.0, "GS2 random": 290.0, "GS3 enterprise": 190.0, "RS4": 250.0,
             **dict.fromkeys(THRESHOLDS, 310.0)}  # fmt: skip


def results(change: dict[str, float] | None = None, **where: object) -> Results:
    """Numbers that fulfil every claim, but for a change in some cases of the second seed."""
    runs = []
    for case in EXPERIMENT.scales["small"].cases:
        forwarded = FORWARDED[str(case["mix"])] if case["covering"] else 1000.0
        values = {
            "forwarded": forwarded, "links_told": 20.0, "stored": forwarded + 400,
            "stored_mean": 50.0, "stored_max": 90.0, "publications_sent": 700.0,
            "deliveries": 1500.0, "deliveries_digest": 12345.0,
            "crossings": 1000.0, "crossings_once": 100.0, "crossings_records": 320.0,
        }  # fmt: skip
        runs.append(Measured(case, 1, values))
        applies = all(case[name] == value for name, value in where.items())
        runs.append(Measured(case, 2, {**values, **((change or {}) if applies else {})}))
    return Results(runs)


def test_what_is_expected_fulfils_every_claim_and_can_be_drawn(tmp_path: Path) -> None:
    expected = results()
    for claim in EXPERIMENT.claims:
        assert claim.judge(expected).verdict is Verdict.REPRODUCED, claim.id
    for figure in EXPERIMENT.figures:
        plots.save(figure, expected, tmp_path / f"{figure.name}.png")
        assert (tmp_path / f"{figure.name}.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("claim", "wrong"),
    [
        ("covering-1", results({"forwarded": 1001.0}, mix="RS4", covering=True)),
        ("covering-1", results({"stored_max": 91.0}, mix="class", covering=True)),
        ("covering-2", results({"deliveries": 1499.0}, mix="LS3", covering=True)),
        ("covering-2", results({"deliveries_digest": 1.0}, mix="LS3", covering=True)),
        ("covering-2", results({"publications_sent": 1.0}, mix="class", covering=False)),
        ("covering-3", results({"forwarded": 999.0}, mix="GS2 random", covering=False)),
        ("covering-4", results({"forwarded": 101.0}, mix="symbol", covering=True)),
        ("covering-5", results({"forwarded": 21.0}, mix="class", covering=True)),
        ("covering-6", results({"forwarded": 450.0}, covering=True)),
        ("covering-7", results({"forwarded": 99.0}, mix="symbol, low <", covering=True)),
        ("covering-8", results({"forwarded": 201.0}, mix="GS3 enterprise", covering=True)),
        ("covering-9", results({"forwarded": 501.0}, mix="LS3", covering=True)),
        ("covering-10", results({"forwarded": 301.0}, mix="LS3", covering=True)),
    ],
)
def test_a_claim_can_fail(claim: str, wrong: Results) -> None:
    judged = {each.id: each.judge(wrong).verdict for each in EXPERIMENT.claims}
    assert judged[claim] is Verdict.NOT_REPRODUCED


def test_a_mix_that_was_not_run_proves_nothing() -> None:
    few = Results([run for run in results().runs if run.case["mix"] != "class"])
    judged = {each.id: each.judge(few).verdict for each in EXPERIMENT.claims[:5]}
    assert judged["covering-5"] is Verdict.NOT_MEASURED
