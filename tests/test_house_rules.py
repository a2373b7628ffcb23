"""The layering and the limits of this code base, checked.  A failure message is the lesson."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "godwit"
SOURCES = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))

FILE_LINES_MAX = 500
FILE_LINES_MEDIAN_MAX = 200
FUNCTION_LINES_MAX = 60

#: What each package may import of ours, besides itself and EVERYBODYS.  Arrows point down only.
ALLOWED = {
    "content": set[str](),
    "matching": {"content"},
    "broker": {"content"},
    "overlay": {"content", "matching", "broker"},
    "trace": {"content", "broker"},
    "migration": {"content"},
    "placement": {"content", "broker"},
    "simulation": {"content", "broker", "overlay", "migration", "trace", "workloads"},
    "workloads": {"content"},
    "wire": {"content"},
    "client": {"content", "matching", "migration", "wire", "rest"},
    "network": {"content", "broker", "overlay", "placement", "trace", "wire", "channels", "rest"},
    "storms": {
        "content", "broker", "overlay", "migration", "client", "network", "testing",
    },
    "spark": set[str](),
    "lab": {"trace", "spark"},
    "balance": set[str](),
    "channels": {"content"},
    "datacluster": {"content", "spark", "channels", "client", "rest", "wire"},
    "coordinator": {"content", "balance", "spark", "rest", "wire"},
    "rest": {"content", "wire", "channels"},
    "emergencies": {"content", "client", "network", "overlay", "rest", "workloads"},
    "experiments": {
        "content", "broker", "overlay", "simulation", "trace", "workloads", "network", "lab",
        "live", "placement", "balance", "channels", "coordinator", "datacluster", "emergencies",
        "rest", "spark",
    },
}  # fmt: skip
EVERYBODYS = {"errors", "config"}
#: Who may import experiments: they are for those who run them, and nothing depends on one.
OF_EXPERIMENTS = {"experiments", "cli"}
#: Modules of other packages that are pure as well.
PURE_MODULES = {
    "client/holdings.py",
    "client/post.py",
    "client/session.py",
    "coordinator/core.py",
    "coordinator/deciding.py",
    "coordinator/records.py",
    "coordinator/registry.py",
    "coordinator/rounds.py",
    "coordinator/situation.py",
    "rest/bcs.py",
    "rest/operations.py",
    "wire/frames.py",
    "wire/stream.py",
}
#: Packages at the top, which may use everything.
TOP = {"cli"}
#: Packages without I/O, clock or chance: everything they do follows from their arguments.
PURE = {
    "content", "matching", "broker", "overlay", "migration", "placement", "balance", "channels",
    "workloads",
}  # fmt: skip
#: ... except these, which read what the others work on.
READERS = {"workloads/quotes.py", "workloads/road_files.py"}
IMPURE_MODULES = {
    "asyncio", "datetime", "os", "pathlib", "pyspark", "secrets", "select", "socket", "subprocess",
    "threading", "time",
}  # fmt: skip


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=of)
def test_arrows_point_down(path: Path) -> None:
    parts = path.relative_to(PACKAGE).parts
    if len(parts) == 1 or parts[0] in TOP:
        return  # demo.py, cli/: the top may use everything.
    package = parts[0]
    assert package in ALLOWED, f"{package}/ is new: say in ALLOWED what it may import"
    for name in imports(ast.parse(path.read_text())):
        if name.startswith("godwit."):
            used = name.split(".")[1]
            assert used in ALLOWED[package] | {package, "errors", "config"}, (
                f"{package}/ imports {used}/"
            )


@pytest.mark.parametrize("path", SOURCES, ids=of)
def test_nothing_depends_on_an_experiment(path: Path) -> None:
    if path.relative_to(PACKAGE).parts[0] not in OF_EXPERIMENTS:
        names = list(imports(ast.parse(path.read_text())))
        assert not [name for name in names if name.startswith("godwit.experiments")]


@pytest.mark.parametrize("path", SOURCES, ids=of)
def test_the_core_does_no_io_and_knows_no_clock(path: Path) -> None:
    module = path.relative_to(PACKAGE)
    if module.parts[0] not in PURE and module.as_posix() not in PURE_MODULES:
        return
    if module.as_posix() in READERS:
        return
    for name in imports(ast.parse(path.read_text())):
        assert name.split(".")[0] not in IMPURE_MODULES, f"{of(path)} imports {name}"
        assert name != "random", (
            "take a Random as an argument; `from random import Random` names it"
        )
        if name.startswith("random."):
            assert name == "random.Random", f"{of(path)} draws from the global generator"


@pytest.mark.parametrize("path", SOURCES, ids=of)
def test_a_module_starts_by_saying_what_it_is_for(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree), f"{of(path)} has no header"


@pytest.mark.parametrize("path", [*SOURCES, *TESTS], ids=of)
def test_functions_fit_a_screen_and_files_hold_one_idea(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= FILE_LINES_MAX, f"{of(path)}: split it by idea"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            assert lines <= FUNCTION_LINES_MAX, f"{node.name} has {lines} lines; split it"


def test_the_median_file_is_short() -> None:
    lengths = [path.read_text().count("\n") for path in SOURCES]
    assert median(lengths) <= FILE_LINES_MEDIAN_MAX


def test_every_decision_record_is_numbered_and_listed() -> None:
    decisions = ROOT / "docs" / "decisions"
    records = sorted(path.name for path in decisions.glob("[0-9]*.md"))
    assert [name[:4] for name in records] == [f"{n:04d}" for n in range(1, len(records) + 1)]
    index = (decisions / "README.md").read_text()
    for name in records:
        assert name in index, f"docs/decisions/README.md does not list {name}"


def test_papers_md_names_files_that_exist() -> None:
    text = (ROOT / "docs" / "papers.md").read_text()
    named = [word for word in text.replace("`", " ").split() if word.endswith(".py")]
    assert named
    for name in named:
        candidates = (ROOT / name, ROOT / "src" / "godwit" / name)
        assert any(path.exists() for path in candidates), f"docs/papers.md names {name}"
