"""Curves: points for figures, which tables do not list."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.lab.toy import toy

from godwit.lab.curves import POINTS_MAX, curve, drawn, points
from godwit.lab.declaration import Measured, Results
from godwit.lab.measuring import checked
from godwit.lab.report import write_page


def test_a_curve_is_drawn_where_every_run_has_a_point() -> None:
    runs = Results(
        [
            Measured({"n": 1}, 1, points("load", {0: 1.0, 1: 2.0, 3: 5.0})),
            Measured({"n": 1}, 2, points("load", {0: 3.0, 1: 4.0, 2: 7.0})),
        ]
    )

    assert drawn(runs, "load") == [(0, 2.0), (1, 3.0)]
    assert drawn(runs, "other") == []


def test_points_are_declared_and_absent_from_the_page(tmp_path: Path) -> None:
    experiment = replace(toy(), measures={**toy().measures, **curve("load", "", "of B1")})
    values = {"deliveries": 2.0, "hops_mean": 1.0, "hops_max": 1.0, **points("load", {7: 0.5})}

    assert len(curve("load", "", "of B1")) == POINTS_MAX
    assert checked(experiment, values) == values
    runs = [Measured({"deliveries": n}, 1, values) for n in (2, 3, 40_000)]
    write_page(experiment, "small", Results(runs), tmp_path)
    page = (tmp_path / "toy.md").read_text()
    assert "hops_mean" in page
    assert "load@" not in page
    assert "load@" not in (tmp_path / "toy.json").read_text()
