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
from godwit.lab import code_version
from godwit.lab.experiment import Experiment

#: A package in place of ours.
SOURCES = {
    "alpha.py": "from godwit.beta import helper\n",
    "beta.py": "from godwit.gamma import inner\n\ndef helper():\n    return inner.N\n",
    "gamma/__init__.py": "",
    "gamma/inner.py": "N = 1\n",
    "delta.py": "unused = 1\n",
}
MINE = '''"""An experiment."""
from godwit.alpha import helper

def run(case, seed, folder):
    """Runs."""
    return 1

def measure(trace, case):
    return 2

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
    ],
)
def test_a_change_of_code_voids(version: Version, file: str, old: str, new: str) -> None:
    assert version.changes_with(file, old, new)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        pytest.param("mine.py", "EXPERIMENT = 1", "EXPERIMENT = 2", id="claims and remarks"),
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
    with pytest.raises(UsageError, match=r"toy uses omega, and there is no godwit\.omega"):
        version.now("omega")
