"""docs/api.md lists what is public: what it lists exists, and what is public is listed."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.command_tree import subcommands
from typer.core import TyperGroup

from godwit import api, cli
from godwit.http.operations import Operation

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "api.md").read_text()
SOURCES = ROOT / "src" / "godwit"
#: Modules whose exports are all public.
PUBLIC = (
    "godwit",
    "godwit.testing",
    "godwit.runtime",
    "godwit.simulation",
    "godwit.policies.staged",
)


def listed(pattern: str) -> set[str]:
    """What the page names in backticks in this form."""
    return {name for name in re.findall(r"`([^`]+)`", PAGE) if re.fullmatch(pattern, name)}


@pytest.mark.parametrize("name", sorted(listed(r"godwit(\.\w+)+")))
def test_every_import_of_the_page_works(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    assert hasattr(importlib.import_module(module), attribute)


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_on_the_page(module: str) -> None:
    exported = {f"{module}.{name}" for name in importlib.import_module(module).__all__}
    assert exported <= listed(r"godwit(\.\w+)+")


def commands(group: TyperGroup, prefix: str) -> Iterator[str]:
    for name, command in subcommands(group).items():
        if not isinstance(command, TyperGroup):
            yield f"{prefix} {name}"
            continue
        if command.invoke_without_command:
            yield f"{prefix} {name}"
        yield from commands(command, f"{prefix} {name}")


def test_the_page_lists_exactly_the_commands() -> None:
    group = typer.main.get_command(cli.app)
    assert isinstance(group, TyperGroup)
    assert set(commands(group, "godwit")) == listed(r"godwit( [a-z]+)+")


def operations() -> Iterator[Operation[Any, Any]]:
    for path in Path(inspect.getfile(api)).parent.glob("*_api.py"):
        module = importlib.import_module(f"godwit.api.{path.stem}")
        yield from (each for each in vars(module).values() if isinstance(each, Operation))


def test_the_page_lists_exactly_the_requests() -> None:
    page = {*re.findall(r"`((?:GET|POST) /[^`]+)`( \*)?", PAGE)}
    plain = ("metrics", "healthz", "routing", "api/stream", "api/tail")
    others = {(f"GET /{name}", "") for name in plain}
    assert page == others | {(str(each), " *" if each.is_guarded else "") for each in operations()}


def metric_names() -> Iterator[str]:
    """The names of metrics in the code, as they are without the suffix of counters."""
    for path in SOURCES.rglob("*.py"):
        tree = ast.parse(path.read_text())
        if "prometheus_client.core" not in {
            node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
        }:
            continue
        texts = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        full = [text for text in texts if re.fullmatch(r"godwit(_[a-z]+)+", text)]
        yield from full
        for prefix in (text for text in texts if re.fullmatch(r"godwit_\w+_", text)):
            parts = {text for text in texts if re.fullmatch(r"[a-z]+(_[a-z]+)*", text)}
            labels = {text for node in ast.walk(tree) for text in _labels(node)}
            yield from (prefix + part for part in parts - labels)


def _labels(node: ast.AST) -> Iterator[str]:
    """Names and values of labels: lists of texts."""
    if isinstance(node, ast.List):
        yield from (
            each.value
            for each in node.elts
            if isinstance(each, ast.Constant) and isinstance(each.value, str)
        )


def test_the_page_lists_exactly_the_metrics() -> None:
    page = {name.removesuffix("_total") for name in listed(r"godwit_\w+")}
    assert page == set(metric_names())
