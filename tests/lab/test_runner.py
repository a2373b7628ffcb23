"""A run is made once, a failure is named, and nothing is left behind."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console
from tests.lab.toy import MEASURES, toy

from godwit.errors import UsageError
from godwit.lab.cache import Cache, PlannedRun
from godwit.lab.declaration import Case, Experiment, Results, Scale
from godwit.lab.progress import Progress
from godwit.lab.runner import RunError, RunOptions, planned, run_experiment


class Bench:
    """Runs toys, and lists the runs that were played."""

    def __init__(self, folder: Path, session: SparkSession) -> None:
        self.options = RunOptions(jobs=2, cache=folder / "cache", session=session)
        self.diary = folder / "diary"
        self.said = io.StringIO()

    def run_experiment(self, experiment: Experiment, *, seeds: int = 2) -> Results:
        runs = planned(experiment, "small", seeds=range(1, seeds + 1))
        progress = Progress(Console(file=self.said, width=200), experiment.name)
        return run_experiment(experiment, "small", runs, self.options, progress)

    def played(self) -> list[str]:
        """Since the last time."""
        lines = self.diary.read_text().splitlines() if self.diary.exists() else []
        self.diary.unlink(missing_ok=True)
        return sorted(lines)

    @property
    def traces(self) -> list[Path]:
        return list(self.options.cache.glob("*/*/trace"))


@pytest.fixture
def bench(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Bench:
    bench = Bench(tmp_path, spark)
    monkeypatch.setenv("TOY_DIARY", str(bench.diary))
    return bench


def test_runs_are_made_once(bench: Bench) -> None:
    first = bench.run_experiment(toy())

    assert bench.played() == ["2 1", "2 2", "3 1", "3 2"]
    assert [(run.case["deliveries"], run.seed) for run in first.runs] == [
        (2, 1), (2, 2), (3, 1), (3, 2),
    ]  # fmt: skip
    assert first.values("deliveries") == [2.0, 2.0, 3.0, 3.0]
    assert first.values("hops_max") == [1.0, 2.0, 1.0, 2.0]
    assert list(first.runs[0].values) == list(MEASURES)
    assert bench.traces == []

    assert bench.run_experiment(toy()) == first
    assert bench.played() == []

    more = bench.run_experiment(toy({"deliveries": 2}, {"deliveries": 4}), seeds=3)
    assert bench.played() == ["2 3", "4 1", "4 2", "4 3"]
    assert more.values("deliveries") == [2.0, 2.0, 2.0, 4.0, 4.0, 4.0]


def test_what_fails_is_named_and_what_is_complete_stays(bench: Bench) -> None:
    good: Case = {"deliveries": 2}
    bad: Case = {"deliveries": 3, "goes": "wrong"}
    bench.run_experiment(toy(good))
    with pytest.raises(RunError) as error:
        bench.run_experiment(toy(good, bad, {"deliveries": 4}), seeds=1)

    first, where, command = str(error.value).splitlines()
    assert first == "toy failed for deliveries=3 goes=wrong, seed 1: the toy is broken"
    assert "raise UsageError" in Path(where.split()[3].rstrip(";")).read_text()
    assert command.strip() == (
        "godwit lab run toy --scale small --seed 1 --case deliveries=3 --case goes=wrong"
    )
    bench.played()
    assert bench.run_experiment(toy(good)).values("deliveries") == [2.0, 2.0]
    assert bench.played() == []


@pytest.mark.parametrize(
    ("goes", "says"),
    [
        pytest.param("worse", "ZeroDivisionError: the toy is very broken", id="a slip of ours"),
        pytest.param("out", "its process ended by SIGKILL", id="out of memory, say"),
        pytest.param("unmeasured", "colour: no such measure is declared", id="no such measure"),
    ],
)
def test_whatever_happens_has_a_name(bench: Bench, goes: str, says: str) -> None:
    with pytest.raises(RunError, match=f"deliveries=2 goes={goes}, seed 1: {says}"):
        bench.run_experiment(toy({"deliveries": 2, "goes": goes}), seeds=1)


def test_nothing_to_measure_is_no_number(bench: Bench) -> None:
    with pytest.raises(RunError, match="hops_mean is None: there was nothing to measure"):
        bench.run_experiment(toy({"deliveries": 0}), seeds=1)


def test_an_interrupted_run_is_made_again(bench: Bench) -> None:
    experiment = toy()
    run = PlannedRun({"deliveries": 2}, 1)
    with Cache(bench.options.cache, experiment) as cache:
        (cache.begin(run) / "handled").mkdir()
    assert bench.traces

    assert bench.run_experiment(experiment, seeds=1).values("deliveries") == [2.0, 3.0]
    assert bench.played() == ["2 1", "3 1"]
    assert bench.traces == []


def test_experiments_that_share_their_runs_make_each_once(bench: Bench) -> None:
    first, second = (replace(toy(), name=name, shares="toys") for name in ("first", "second"))
    bench.run_experiment(first, seeds=1)
    assert bench.played() == ["2 1", "3 1"]
    bench.run_experiment(second, seeds=2)
    assert bench.played() == ["2 2", "3 2"], "the first seed is there"
    bench.run_experiment(toy(), seeds=1)
    assert bench.played() == ["2 1", "3 1"], "it shares nothing"


def test_a_cache_has_one_writer(bench: Bench) -> None:
    with Cache(bench.options.cache, toy()), pytest.raises(UsageError, match="by another process"):
        bench.run_experiment(toy())
    assert len(bench.run_experiment(toy()).runs) == 4


def test_progress_counts_and_estimates(bench: Bench) -> None:
    bench.run_experiment(toy(), seeds=1)
    bench.run_experiment(toy(), seeds=3)

    lines = bench.said.getvalue().splitlines()
    assert lines[0] == "toy: 2 runs, 0 of them complete already"
    assert lines[1].startswith("toy: 1/2  deliveries=")
    assert lines[2].endswith("  done")
    assert lines[4] == "toy: 6 runs, 2 of them complete already"
    assert lines[5].startswith("toy: 3/6  deliveries=")
    assert re.search(r"  about \d+ s left$", lines[6])


def test_what_cannot_be_planned_is_said() -> None:
    with pytest.raises(UsageError, match="toy has no scale 'paper'; choose from small"):
        planned(toy(), "paper")
    with pytest.raises(UsageError, match="no case of toy at the scale small has deliveries=7"):
        planned(toy(), "small", only={"deliveries": "7"})
    assert planned(toy(), "small", seeds=[9], only={"deliveries": "3"}) == [
        PlannedRun({"deliveries": 3}, 9)
    ]


def test_what_takes_long_is_run_once() -> None:
    once = Scale([{"deliveries": 2}], seeds=3, once=[{"deliveries": 5}])
    experiment = replace(toy(), scales={"small": once})
    long, short = PlannedRun({"deliveries": 5}, 1), {"deliveries": 2}
    assert planned(experiment, "small") == [
        PlannedRun(short, 1),
        PlannedRun(short, 2),
        PlannedRun(short, 3),
        long,
    ]
    assert planned(experiment, "small", seeds=[1, 2], only={"deliveries": "5"}) == [long]
    assert once.runs == 4
