"""Help texts and tables: what stands in brackets is shown, as the whole text is."""

from __future__ import annotations

import re

import pytest
import typer
from rich.markup import escape
from rich.text import Text
from tests.cli.test_cli import commands
from typer.testing import CliRunner

from godwit.cli import app
from godwit.cli.terminal import console

COMMANDS = [
    (path, command) for path, command in commands(typer.main.get_command(app)) if path != ()
]


def plain(help: str) -> str:
    """A help text as its author meant it: `\\[` is a bracket."""
    return " ".join(help.replace("\\[", "[").split())


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=lambda each: str(each)[:30])
def test_nothing_of_a_help_text_is_taken_for_markup(path: tuple[str, ...], command: object) -> None:
    helps = [getattr(command, "help", None) or ""]
    helps += [parameter.help or "" for parameter in command.params if not parameter.hidden]  # type: ignore[attr-defined]
    for help in helps:
        marked = Text.from_markup(help)
        assert " ".join(marked.plain.split()) == plain(help), f"{path}: write \\\\[ for a bracket"
        assert not marked.spans

    done = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "1000"})
    assert done.exit_code == 0
    shown = " ".join(done.output.split())
    for help in helps:
        assert plain(help).split("\f")[0] in shown


def test_a_text_of_a_server_is_printed_with_its_brackets() -> None:
    terminal = console()
    with terminal.capture() as printed:
        terminal.print("failed: column [bold] of [/x] is unknown")
    assert printed.get() == "failed: column [bold] of [/x] is unknown\n"
    assert escape("[bold]") == "\\[bold]", "what a text would need otherwise"


def test_the_version_is_shown() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert done.exit_code == 0
    assert re.fullmatch(r"godwit-pubsub \d+\.\d+\.\d+\S*, protocol \d+\.\d+\n", done.output)
