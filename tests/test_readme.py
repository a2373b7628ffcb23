"""The documents: examples print what is shown; links, commands and paths exist."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.command_tree import subcommands
from tests.test_examples import PRINTED
from tests.test_house_rules import ORDER
from typer.core import TyperGroup

from godwit import cli

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), ROOT / "benchmarks" / "README.md", *ROOT.glob("docs/**/*.md")])

#: Files that a reader writes.
NOT_OURS = {"hall.py", "wider.py"}


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(language: str, page: str = "README.md") -> list[str]:
    """The fenced blocks of one language; "" is those without."""
    text = (ROOT / page).read_text()
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    return [text for found, text in fenced if found == language]


def test_the_fifteen_lines_print_what_the_readme_says() -> None:
    (example,) = blocks("python")
    expected = next(block for block in blocks("") if block.startswith("alice got"))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example, "README.md", "exec"), {"__name__": "readme"})  # noqa: S102  our own text

    assert printed.getvalue() == expected
    assert len([line for line in example.splitlines() if line.strip()]) <= 15


def test_the_session_answers_what_the_readme_says() -> None:
    (session,) = blocks("pycon")
    test = doctest.DocTestParser().get_doctest(session, {}, "README.md", "README.md", 0)
    results = doctest.DocTestRunner().run(test)

    assert results.attempted == 7
    assert results.failed == 0


@pytest.mark.parametrize(
    "page",
    [
        "docs/guide.md",
        "docs/applications.md",
        "docs/lab.md",
        "docs/placement.md",
        "docs/balancing.md",
        "docs/offload.md",
    ],
)
def test_the_example_of_the_guide_runs(page: str) -> None:
    (example,) = blocks("python", page)
    exec(compile(example, page, "exec"), {"__name__": "guide"})  # noqa: S102  our own text


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            if "://" in target:
                continue
            path, _, anchor = target.partition("#")
            found = page.parent / path if path else page
            assert found.exists(), f"{name_of(page)} links to {target}"
            if anchor:
                assert anchor in anchors(found), f"{name_of(page)} links to {target}"


def anchors(page: Path) -> set[str]:
    """Headings, as a code host makes anchors of them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


def test_what_the_readme_says_is_proved_by_tests_that_exist() -> None:
    paths = re.findall(r"`(tests/[\w/]+\.py)`", (ROOT / "README.md").read_text())
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_readme_shows_what_the_example_prints() -> None:
    assert PRINTED["channels.py"] in blocks("")


def test_the_program_of_the_readme_subscribes_to_its_channel() -> None:
    (program,) = blocks("py")
    compile(program, "hall.py", "exec")
    (made,) = [block for block in blocks("") if block.startswith("godwit execute")]
    (channel,) = re.findall(r"CREATE CHANNEL (\w+)", made)
    assert f'subscribe_channel("{channel}"' in program


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_toml_of_the_docs_can_be_read(page: Path) -> None:
    for block in blocks("toml", str(page)):
        tomllib.loads(block)


def commands(page: Path) -> list[str]:
    """Commands in blocks and in the text, each on one line."""
    text = page.read_text()
    fenced = [line for block in blocks("", str(page)) for line in block.splitlines()]
    inline = [" ".join(each.split()) for each in re.findall(r"`(godwit [^`]+)`", text)]
    return [line for line in (*fenced, *inline) if line.startswith("godwit ")]


@cache
def all_commands() -> Any:
    return typer.main.get_command(cli.app)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_of_the_docs_exist_with_their_options(page: Path) -> None:
    everything = all_commands()
    for line in commands(page):
        command: Any = everything
        words = line.partition("#")[0].split()[1:]
        while words and isinstance(command, TyperGroup) and words[0] in subcommands(command):
            command = subcommands(command)[words.pop(0)]
        is_known = command is not everything or words == ["--version"]
        assert is_known, f"{name_of(page)}: there is no such command: {line}"
        options = {
            option for each in command.params for option in (*each.opts, *each.secondary_opts)
        }
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", " ".join(words).partition(" | ")[0]):
            assert option in options, f"{name_of(page)}: there is no option {option}: {line}"


def test_the_decision_about_storeys_names_every_package() -> None:
    decision = (ROOT / "docs" / "decisions" / "0016-storeys.md").read_text()
    for package in ORDER:
        if not package.startswith("__"):
            name = package.removeprefix("datacluster.")
            assert f"`{name}`" in decision, f"decision 16 does not say where {package} stands"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_the_docs_name_exist(page: Path) -> None:
    """By their path from the root or from src/godwit; a name alone, anywhere in the sources."""
    sources = ROOT / "src" / "godwit"
    names = {path.name for path in sources.rglob("*.py")} | NOT_OURS
    for name in re.findall(r"`([\w/]+\.py)`", page.read_text()):
        found = [(ROOT / name).exists(), (sources / name).exists(), name in names]
        assert any(found), f"{name_of(page)} names {name}"
