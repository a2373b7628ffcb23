"""Of which code a result is: a digest of every module of ours that a run goes through.

These are the modules in which the experiment's `run` and `measure` are written, whatever they
import, directly or not, and what the experiment says it `uses` besides (what it starts in other
processes, say).  A source counts as the tree that Python reads of it, without docstrings and
without the declaration `EXPERIMENT = ...`: to mend a comment, a remark or a claim voids nothing
that was run.  (To mend a figure does, if it is drawn in the same module.)
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import godwit
from godwit.errors import UsageError
from godwit.lab.experiment import Experiment

PACKAGE = Path(godwit.__file__).parent
#: What declares, carries out and reports changes no number.
MACHINERY = frozenset(
    PACKAGE / "lab" / f"{name}.py"
    for name in (
        "cache", "claims", "code_version", "experiment", "java", "measuring", "plots", "progress",
        "report", "runner", "spark", "summary", "workers",
    )
)  # fmt: skip
DECLARATION = "EXPERIMENT"


def code_version(experiment: Experiment) -> str:
    found: dict[Path, ast.Module] = {}
    to_read = [Path(inspect.getfile(experiment.run)), Path(inspect.getfile(experiment.measure))]
    for name in experiment.uses:
        to_read += _used(name, experiment)
    while to_read:
        path = to_read.pop()
        if path in found or path in MACHINERY:
            continue
        found[path] = _tree(path)
        to_read += _imported(found[path])
    digest = hashlib.sha256()
    for path in sorted(found):
        digest.update(path.name.encode())
        digest.update(ast.dump(found[path]).encode())
    return digest.hexdigest()


def _used(name: str, experiment: Experiment) -> list[Path]:
    """The sources of a package, or of a module."""
    place = PACKAGE.joinpath(*name.split("."))
    found = list(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    if not found or not found[0].exists():
        raise UsageError(f"{experiment.name} uses {name}, and there is no godwit.{name}")
    return found


def _imported(tree: ast.Module) -> Iterator[Path]:
    """The modules of ours that a module names in its imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            # What is imported is a module itself, or in a module.
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            package, *inside = name.split(".")
            place = PACKAGE.joinpath(*inside)
            if package == PACKAGE.name and inside:
                candidates = (place.with_suffix(".py"), place / "__init__.py")
                yield from (path for path in candidates if path.exists())


def _tree(path: Path) -> ast.Module:
    tree = ast.parse(path.read_bytes())
    tree.body = [statement for statement in tree.body if not _is_declaration(statement)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [statement for statement in node.body if not _is_text(statement)]
    return tree


def _is_declaration(statement: ast.stmt) -> bool:
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    return any(isinstance(target, ast.Name) and target.id == DECLARATION for target in targets)


def _is_text(statement: ast.stmt) -> bool:
    """A docstring, of whatever stands before it."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
        return False
    return isinstance(statement.value.value, str)
