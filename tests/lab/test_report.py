"""The pages: complete, readable, and the same bytes for the same results."""

from __future__ import annotations

import io
import re
import struct
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from tests.lab.toy import toy

from godwit.lab.declaration import Figure, Measured, Results
from godwit.lab.plots import lines
from godwit.lab.report import write_index, write_page
from godwit.lab.rules import Claim, ShapeRule
from godwit.lab.summary import summarise
from godwit.lab.text_tables import rich_tables

RESULTS = Results(
    [
        Measured({"deliveries": n}, seed, {"deliveries": n, "hops_mean": n / seed, "hops_max": n})
        for n in (2, 3, 40_000)
        for seed in (1, 2)
    ]
)


def written(folder: Path) -> dict[str, bytes]:
    again = replace(toy(), name="again", claims=toy().claims[:2], figures=())
    write_page(toy(), "small", RESULTS, folder)
    write_page(again, "small", RESULTS, folder)
    write_index([toy(), again, replace(toy(), name="never-run")], folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_page_has_everything(tmp_path: Path) -> None:
    files = written(tmp_path)
    page = files["toy.md"].decode()

    for text in (
        "# A toy\n",
        "Does the machinery work?",
        "A few deliveries.",
        "Scale *small*, seeds 1, 2: `godwit lab run toy --scale small --seeds 2`.",
        "![growth](toy-growth.png)\n\nIt grows.",
        "| toy-3 | More &lt; most | a paper | 0.5 | 0.2 | not reproduced |",
        "| hops_mean | hops | of a delivery |",
        "| 2 | 2 | 1.5 ± 0.71 | 2 |",
        "| 40000 | 40,000 | 30,000 ± 14,142 | 40,000 |",
        "It is a toy.",
    ):
        assert text in page, text
    for target in re.findall(r"\]\(([^)]+)\)", page + files["index.md"].decode()):
        assert target in files


def test_the_index_keeps_the_score(tmp_path: Path) -> None:
    index = written(tmp_path)["index.md"].decode()

    assert "| [toy](toy.md) | A toy | small | 2 | 0 | 1 |" in index
    assert "| [again](again.md) | A toy | small | 2 | 0 | 0 |" in index
    assert "| all |  |  | 4 | 0 | 1 |" in index
    assert "godwit lab report" in index
    assert "never-run" not in index


def test_what_was_not_measured_at_this_scale_is_left_out(tmp_path: Path) -> None:
    rule = ShapeRule("wide < 3", lambda found: found.where(fanout=4).mean("hops_mean") < 3)
    claim = Claim("toy-4", "Wide trees are low", "our own", rule)
    wide = Figure(
        "wide", "Wide trees.",
        lambda axes, found: lines(axes, {"": found.where(fanout=4)}, x="deliveries", y="hops_mean"),
    )  # fmt: skip
    some = replace(toy(), claims=(*toy().claims, claim), figures=(*toy().figures, wide))
    (tmp_path / "toy-wide.png").write_bytes(b"of another scale")
    write_page(some, "small", RESULTS, tmp_path)
    write_index([some], tmp_path)

    page, index = (tmp_path / "toy.md").read_text(), (tmp_path / "index.md").read_text()
    assert "| toy-4 | Wide trees are low | our own |  | - | not measured at this scale |" in page
    assert "toy-growth.png" in page
    assert "Wide trees." not in page
    assert not (tmp_path / "toy-wide.png").exists()
    assert "| reproduced | exceeded | not reproduced | not measured at this scale |" in index
    assert "| [toy](toy.md) | A toy | small | 2 | 0 | 1 | 1 |" in index


def test_the_same_results_give_the_same_bytes(tmp_path: Path) -> None:
    assert written(tmp_path / "one") == written(tmp_path / "two")


def test_a_figure_fits_a_page(tmp_path: Path) -> None:
    png = written(tmp_path)["toy-growth.png"]

    assert struct.unpack(">II", png[16:24]) == (800, 450)
    assert len(png) < 100_000


def test_the_terminal_shows_cases_side_by_side() -> None:
    summary = summarise(toy(), "small", RESULTS)
    console = Console(width=80, record=True, file=io.StringIO())
    for table in rich_tables(summary, width=80):
        console.print(table)
    shown = console.export_text()

    assert "toy, small: means over the seeds 1, 2" in shown
    (line,) = (line for line in shown.splitlines() if "hops_mean" in line)
    assert [cell.strip() for cell in line.split("│")[2:5]] == ["1.5", "2.25", "30,000"]
    assert "not reproduced" in shown
