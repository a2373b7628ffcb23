"""The README is run: its example prints what it says, its session answers what it says."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


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
    ],
)
def test_the_example_of_the_guide_runs(page: str) -> None:
    (example,) = blocks("python", page)
    exec(compile(example, page, "exec"), {"__name__": "guide"})  # noqa: S102  our own text


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
