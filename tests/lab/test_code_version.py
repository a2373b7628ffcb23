"""What voids earlier runs, and what does not."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.lab.toy import toy

from godwit.errors import UsageError
from godwit.experiments import EXPERIMENTS
from godwit.lab import code_version
from godwit.lab.code_version import PACKAGE
from godwit.lab.declaration import Experiment

#: A package in place of ours.
SOURCES = {
    "alpha.py": "from godwit.beta import helper\n",
    "beta.py": "from godwit.gamma import inner\n\ndef helper():\n    return inner.N\n",
    "gamma/__init__.py": (
        "from godwit.gamma.experiment import EXPERIMENT\nfrom godwit.epsilon import used\n"
    ),
    "gamma/inner.py": "N = 1\n",
    "gamma/experiment.py": "from godwit.gamma.claims import CLAIMS\n\nEXPERIMENT = 1\n",
    "gamma/claims.py": "CLAIMS = 1\n",
    "delta.py": "unused = 1\n",
    "epsilon.py": "used = 1\n",
}
MINE = '''"""An experiment."""
from godwit.alpha import helper

def run(case, seed, folder):
    """Runs."""
    return 1

def measure(trace, case):
    return 2

MEASURES: dict = {"hops": 1}
EXPERIMENT = 1
'''


class Version:
    def __init__(self, folder: Path, experiment: Experiment) -> None:
        self.folder = folder
        self.experiment = experiment

    def now(self, *uses: str) -> str:
        return code_version.code_version(dataclasses.replace(self.experiment, uses=uses))

    def changes_with(self, file: str, old: str, new: str) -> bool:
        path = self.folder / file
        before, text = self.now(), path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        return self.now() != before


@pytest.fixture
def version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Version]:
    package = tmp_path / "godwit"
    for name, text in SOURCES.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    (tmp_path / "mine.py").write_text(MINE.replace("from godwit.alpha import helper", ""))
    monkeypatch.syspath_prepend(str(tmp_path))
    mine = importlib.import_module("mine")
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.setattr(code_version, "PACKAGE", package)
    yield Version(tmp_path, dataclasses.replace(toy(), run=mine.run, measure=mine.measure))
    del sys.modules["mine"]


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        pytest.param("mine.py", "return 1", "return 7", id="run"),
        pytest.param("mine.py", "return 2", "return 7", id="measure"),
        pytest.param("godwit/alpha.py", "\n", "\nx = 1\n", id="what it imports"),
        pytest.param("godwit/beta.py", "return inner.N", "return 7", id="what that imports"),
        pytest.param("godwit/gamma/inner.py", "N = 1", "N = 2", id="what that imports in turn"),
        pytest.param("godwit/epsilon.py", "used = 1", "used = 2", id="what a package imports"),
    ],
)
def test_a_change_of_code_voids(version: Version, file: str, old: str, new: str) -> None:
    assert version.changes_with(file, old, new)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        pytest.param("mine.py", "EXPERIMENT = 1", "EXPERIMENT = 2", id="claims and remarks"),
        pytest.param("mine.py", '"hops": 1', '"hops": 2', id="the meaning of a measure"),
        pytest.param(
            "godwit/gamma/experiment.py",
            "import CLAIMS",
            "import CLAIMS as C",
            id="the declaration that a package offers",
        ),
        pytest.param("godwit/gamma/claims.py", "CLAIMS = 1", "CLAIMS = 2", id="its claims"),
        pytest.param("mine.py", '"""Runs."""', '"""It runs."""', id="a docstring"),
        pytest.param("mine.py", "return 1", "return  1  # One.", id="a comment"),
        pytest.param("godwit/delta.py", "unused = 1", "unused = 2", id="what is not used"),
    ],
)
def test_other_changes_do_not(version: Version, file: str, old: str, new: str) -> None:
    assert not version.changes_with(file, old, new)


def test_what_an_experiment_says_it_uses_counts(version: Version) -> None:
    assert version.now("delta") != version.now()
    assert version.now("gamma") == version.now("gamma", "gamma.inner")
    with pytest.raises(UsageError, match=r"toy uses omega, but there is no godwit\.omega"):
        version.now("omega")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_claims_and_figures_of_ours_are_in_modules_that_no_run_goes_through(name: str) -> None:
    experiment = EXPERIMENTS[name]
    found = {str(path.relative_to(PACKAGE)) for path in code_version.sources(experiment)}

    for path in found:
        described = ("__init__.py", "experiment.py", "claims.py", "move_claims.py", "figures.py")
        assert not path.startswith("experiments/") or not path.endswith(described), path
        assert not path.startswith("lab/") or path.startswith("lab/metrics/"), path
    for function in (experiment.run, experiment.measure):
        assert f"{function.__module__.removeprefix('godwit.').replace('.', '/')}.py" in found
    assert {"trace/schema.py", "trace/writer.py"} <= found
    assert found & {"lab/metrics/numbers.py", "lab/metrics/stages.py"}, "its metrics count"
    if name not in ("bad-simulation", "bad-prototype", "offload-cost"):  # No broker is simulated.
        assert {
            "broker/core.py", "overlay/tree/tree_routing.py", "simulation/simulator.py",
            "experiments/watched.py", "matching/index.py", "trace/recorder.py",
        } <= found  # fmt: skip
