"""`benchmarks/same_numbers.py` finds every number that differs, and ignores what may differ."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.same_numbers import main

CASE = {"driver": "simulated", "x": 4}
LIVE = {"driver": "live", "x": 4}


class Folder:
    """Writes what `godwit lab run` leaves."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, *hops: float, live: float = 1.0, verdict: str = "reproduced") -> None:
        """A value for each seed."""
        self.path.mkdir(exist_ok=True)
        metrics = [
            {"case": case, "values": {"hops_mean": _statistic(values)}}
            for case, values in ((CASE, hops), (LIVE, (live,)))
        ]
        summary = {
            "seeds": list(range(1, len(hops) + 1)),
            "metrics": metrics,
            "claims": [{"id": "tree-1", "verdict": verdict}],
        }
        (self.path / "tree.json").write_text(json.dumps(summary))

    def cache(self, key: str, case: dict[str, object], seed: int, hops: float) -> None:
        folder = self.path / "cache" / "tree" / key
        folder.mkdir(parents=True)
        result = {"case": case, "seed": seed, "values": {"hops_mean": hops}}
        (folder / "result.json").write_text(json.dumps(result))


def _statistic(values: tuple[float, ...]) -> dict[str, float | None]:
    mean = sum(values) / len(values)
    return {"mean": mean, "stddev": None, "min": min(values), "max": max(values)}


@pytest.fixture
def before(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "before")


@pytest.fixture
def after(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "after")


def test_equal_numbers(before: Folder, after: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    before.write(2.0, live=3.0)
    after.write(2.0, live=4.0, verdict="not reproduced")

    assert main([str(before.path), str(after.path)]) == 0
    line, ignored, verdict = capsys.readouterr().out.splitlines()
    assert " ".join(line.split()) == "tree 3 measures compared, 3 equal, 0 different"
    assert ignored == "  ignored, live: driver=live x=4  seeds 1"
    assert verdict == "  verdict of tree-1: reproduced -> not reproduced"


def test_a_number_that_differs_is_named_with_its_case_and_seed(
    before: Folder, after: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in (before, after):
        folder.write(2.0, 3.0)
        folder.cache("a", CASE, 1, 2.0)
        folder.cache("b", LIVE, 1, 7.0)
        folder.cache("old", {"driver": "simulated", "x": 5}, 1, 7.0)
    before.cache("c", CASE, 2, 3.0)
    after.cache("c", CASE, 2, 3.000001)

    assert main([str(before.path), str(after.path)]) == 1
    line, _, difference = capsys.readouterr().out.splitlines()
    assert "2 measures compared" in line
    assert "1 different" in line
    assert difference == "  hops_mean  driver=simulated x=4  seed 2: 3.0 -> 3.000001"


def test_an_order_of_addition_is_no_difference(before: Folder, after: Folder) -> None:
    before.write(0.1 + 0.2)
    after.write(0.3)
    assert main([str(before.path), str(after.path)]) == 0


@pytest.mark.parametrize("text", ["", None])
def test_a_run_that_crashed_is_a_difference(
    before: Folder, after: Folder, text: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    before.write(2.0)
    after.path.mkdir()
    if text is not None:
        (after.path / "tree.json").write_text(text)

    assert main([str(before.path), str(after.path)]) == 1
    assert "no output in" in capsys.readouterr().out


def test_a_measure_that_only_one_of_them_has_is_a_difference(
    before: Folder, after: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in (before, after):
        folder.write(2.0, 3.0)
        folder.cache("a", CASE, 1, 2.0)
    after.cache("b", CASE, 2, 3.0)

    assert main([str(before.path), str(after.path)]) == 1
    assert "hops_mean  driver=simulated x=4  seed 2: only after" in capsys.readouterr().out
