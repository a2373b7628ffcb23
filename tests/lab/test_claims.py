"""The rules, at their borders; and numbers over seeds."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.lab.toy import toy

from godwit.lab.declaration import Measured, NotMeasuredError, Results
from godwit.lab.rules import Agreement, Claim, Reduction, Rule, ShapeRule, Verdict
from godwit.lab.summary import Summary, summarise


def results(*hops: float) -> Results:
    """One case, a seed for each number."""
    return Results(
        [Measured({"deliveries": 2}, seed, {"hops_mean": n}) for seed, n in enumerate(hops, 1)]
    )


def reduction(stated: float) -> Reduction:
    return Reduction(stated, lambda found: found.mean("hops_mean"))


@pytest.mark.parametrize(
    ("rule", "measured", "verdict"),
    [
        pytest.param(reduction(0.8), 0.81, Verdict.EXCEEDED, id="better than stated"),
        pytest.param(reduction(0.8), 0.80, Verdict.REPRODUCED, id="as stated"),
        pytest.param(reduction(0.8), 0.73, Verdict.REPRODUCED, id="within ten percent"),
        pytest.param(reduction(0.8), 0.71, Verdict.NOT_REPRODUCED, id="not within"),
        pytest.param(
            Agreement(0.05, lambda found: found.mean("hops_mean")),
            0.05, Verdict.REPRODUCED, id="an error as large as allowed",
        ),
        pytest.param(
            Agreement(0.05, lambda found: found.mean("hops_mean")),
            0.06, Verdict.NOT_REPRODUCED, id="a larger error",
        ),
    ],
)  # fmt: skip
def test_a_number_is_judged(rule: Rule, measured: float, verdict: Verdict) -> None:
    judgement = rule.judge(results(measured, measured))

    assert judgement.verdict is verdict
    assert judgement.measured == pytest.approx(measured)


def test_a_shape_holds_for_every_seed_or_not_at_all() -> None:
    low = ShapeRule("hops < 3", lambda found: found.mean("hops_mean") < 3)

    assert low.judge(results(1.0, 2.0)).verdict is Verdict.REPRODUCED
    judgement = low.judge(results(1.0, 2.0, 3.0, 1.0))  # On average it would hold.
    assert (judgement.verdict, judgement.measured) == (Verdict.NOT_REPRODUCED, 0.75)
    assert low.text == "hops < 3, for every seed"


def test_a_rule_says_in_words_what_it_does() -> None:
    assert (
        reduction(0.8).text == "at least 0.72 (0.8 within 10% relative); above 0.8 it is exceeded"
    )
    assert Agreement(0.05, lambda _: 0.0).text == "the relative error is at most 5% everywhere"
    assert "at most 0.0001% everywhere" in Agreement(1e-6, lambda _: 0.0).text


def test_a_claim_about_cases_that_the_scale_lacks_is_not_measured() -> None:
    shape = ShapeRule("wide < 3", lambda found: found.where(fanout=4).mean("hops_mean") < 3)
    claims = (Claim("toy-1", "Wide trees are low", "our own", shape), *toy().claims[1:])
    summary = summarise(replace(toy(), claims=claims), "small", results(1.0, 2.0))

    first, second, _ = json.loads(summary.to_json())["claims"]
    assert (first["measured"], first["verdict"]) == (None, "not measured at this scale")
    assert (second["measured"], second["verdict"]) == (0.46, "reproduced")
    assert Summary.from_json(summary.to_json()) == summary
    with pytest.raises(NotMeasuredError, match="no run has fanout=4"):
        shape.judge(results(1.0))


def test_numbers_over_seeds() -> None:
    summary = summarise(toy(), "small", results(1.0, 2.0, 6.0), judged=False)

    (of_case,) = summary.metrics
    (name, statistic), = of_case.values.items()  # fmt: skip
    assert (name, statistic.unit, statistic.n) == ("hops_mean", "hops", 3)
    assert (statistic.mean, statistic.min, statistic.max) == (3.0, 1.0, 6.0)
    assert statistic.stddev == pytest.approx(7**0.5, rel=1e-6)
    assert summary.seeds == [1, 2, 3]
    assert summary.claims == []
    assert summarise(toy(), "small", results(1.0), judged=False).metrics[0].values[
        "hops_mean"
    ].stddev is None  # fmt: skip


def test_a_summary_is_one_json_object() -> None:
    run = Measured({"deliveries": 2}, 1, {"deliveries": 1.0})
    other = Measured({"deliveries": 3}, 1, {"deliveries": 3.0})
    summary = summarise(toy(), "small", Results([run, other]))
    found = json.loads(summary.to_json())

    assert list(found) == ["experiment", "scale", "seeds", "metrics", "claims"]
    assert [claim["verdict"] for claim in found["claims"]] == [
        "reproduced", "reproduced", "not reproduced",
    ]  # fmt: skip
    assert found["claims"][1] == {
        "id": "toy-2",
        "statement": "Less by half",
        "source": "a paper",
        "rule": "at least 0.45 (0.5 within 10% relative); above 0.5 it is exceeded",
        "paper": 0.5,
        "measured": 0.46,
        "verdict": "reproduced",
    }
    assert found["metrics"][1] == {
        "case": {"deliveries": 3},
        "values": {
            "deliveries": {
                "unit": "deliveries", "n": 1, "mean": 3.0, "stddev": None, "min": 3.0, "max": 3.0,
            }
        },
    }  # fmt: skip
    assert Summary.from_json(summary.to_json()) == summary
    assert summary.count(Verdict.REPRODUCED) == 2
