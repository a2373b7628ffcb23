"""Several statements in one text, and `godwit execute` with a file of them."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from godwit.api import datacluster_api as api
from godwit.cli import app
from godwit.cli import datacluster as commands
from godwit.datacluster.ddl.splitting import split
from godwit.errors import UsageError

FEED = "CREATE FEED f FROM FILTER \"a = ';\n'\" INTO d"
CHANNEL = "CREATE CHANNEL c() CONTINUOUS AS\nSELECT 'it\\'s; x' -- note; note\nFROM NEW d"


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param(" ;\n; -- only a comment;", [], id="nothing but separators and comments"),
        pytest.param("DROP FEED f", ["DROP FEED f"], id="no semicolon"),
        pytest.param("DROP FEED f; DROP FEED g;", ["DROP FEED f", "DROP FEED g"], id="one line"),
        pytest.param(f"{FEED};\nDROP FEED f;", [FEED, "DROP FEED f"], id="within a filter"),
        pytest.param(f"{CHANNEL};\n{FEED}", [CHANNEL, FEED], id="within a query"),
        pytest.param(
            "/* a; b */ DROP FEED f -- ; c\n; -- d;\nDROP FEED g",
            ["DROP FEED f", "DROP FEED g"],
            id="within comments",
        ),
    ],
)
def test_only_semicolons_between_statements_separate(text: str, statements: list[str]) -> None:
    assert split(text) == statements


@pytest.mark.parametrize("text", ["DROP FEED 'f; x", "DROP FEED f /* ; x", 'DROP FEED "f; x'])
def test_an_open_quote_or_comment_is_an_error(text: str) -> None:
    with pytest.raises(UsageError, match=r"cannot be separated: .* no closing quote"):
        split(text)


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        pytest.param(f"{FEED};\n{CHANNEL};\n", [FEED, CHANNEL], id="two"),
        pytest.param("DROP FEED f;\n", ["DROP FEED f"], id="one"),
        pytest.param("\n", [], id="none"),
    ],
)
def test_execute_reads_a_file(
    text: str, statements: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def ask(_url: str, _operation: object, request: api.Statement, _secret: str) -> api.Done:
        asked.append(request.text)
        return api.Done("done")

    monkeypatch.setattr(commands, "_ask", ask)
    result = CliRunner().invoke(app, ["execute"], input=text, catch_exceptions=False)
    assert result.output == "done\n" * len(statements)
    assert asked == statements
