"""The version of the code behind a result: a digest of every module that a run goes through.

These are the modules that define the experiment's `run` and `measure`, all that they import,
directly or not, and what the experiment declares in `uses` (what it starts in other processes, for
example).

V1  A change of code in one of these modules voids earlier runs.
V2  A change of comments, docstrings, `EXPERIMENT = ...` and `MEASURES = ...` does not, nor does
    one of claims, figures and remarks in modules of their own.  An import of `EXPERIMENT`, as in
    the `__init__.py` of an experiment's folder, is not followed.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import godwit
from godwit.errors import UsageError
from godwit.lab.declaration import Experiment

PACKAGE = Path(godwit.__file__).parent
#: Declares, runs and reports experiments; changes no number.
MACHINERY = frozenset((PACKAGE / "lab").glob("*.py")) | {
    PACKAGE / "spark" / "java.py",
    PACKAGE / "spark" / "session.py",
}
#: Names of values that describe an experiment and its numbers, and do not make them.
DECLARATIONS = ("EXPERIMENT", "MEASURES")


def code_version(experiment: Experiment) -> str:
    found = sources(experiment)
    digest = hashlib.sha256()
    for path in sorted(found):
        digest.update(path.name.encode())
        digest.update(found[path].encode())
    return digest.hexdigest()


def sources(experiment: Experiment) -> dict[Path, str]:
    """The modules that a run goes through, each as the code that counts."""
    found: dict[Path, str] = {}
    to_read = [Path(inspect.getfile(experiment.run)), Path(inspect.getfile(experiment.measure))]
    for name in experiment.uses:
        to_read += _used(name, experiment)
    while to_read:
        path = to_read.pop()
        if path in found or path in MACHINERY:
            continue
        module = _module(path.read_bytes())
        found[path] = module.code
        to_read += _ours(module.imports)
    return found


class _Module(NamedTuple):
    code: str
    imports: list[str]


@lru_cache(maxsize=1_000)  # Experiments go through the same modules, and parsing takes long.
def _module(source: bytes) -> _Module:
    tree = _tree(source)
    return _Module(ast.dump(tree), list(_imported(tree)))


def _used(name: str, experiment: Experiment) -> list[Path]:
    """The sources of a package, or of a module."""
    place = PACKAGE.joinpath(*name.split("."))
    found = list(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    if not found or not found[0].exists():
        raise UsageError(f"{experiment.name} uses {name}, but there is no godwit.{name}")
    return found


def _imported(tree: ast.Module) -> Iterator[str]:
    """The names in the imports of a module, with dots."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            # An imported name is a module itself, or is defined in one.
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _ours(names: list[str]) -> Iterator[Path]:
    """The modules of ours among them."""
    for name in names:
        package, *inside = name.split(".")
        place = PACKAGE.joinpath(*inside)
        if package == PACKAGE.name and inside:
            candidates = (place.with_suffix(".py"), place / "__init__.py")
            yield from (path for path in candidates if path.exists())


def _tree(source: bytes) -> ast.Module:
    tree = ast.parse(source)
    tree.body = [statement for statement in tree.body if not _is_declaration(statement)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [statement for statement in node.body if not _is_text(statement)]
    return tree


def _is_declaration(statement: ast.stmt) -> bool:
    """Makes a declaration, or imports only that."""
    names: list[str] = []
    if isinstance(statement, ast.ImportFrom):
        names = [alias.name for alias in statement.names]
    elif isinstance(statement, ast.Assign):
        names = [each.id for each in statement.targets if isinstance(each, ast.Name)]
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        names = [statement.target.id]
    return bool(names) and all(name in DECLARATIONS for name in names)


def _is_text(statement: ast.stmt) -> bool:
    """A docstring, of a module, class, function or attribute."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
        return False
    return isinstance(statement.value.value, str)
