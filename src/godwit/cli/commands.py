"""Which file has which command.

A command imports its own file and what that needs, and no other: `godwit broker` starts in half of
the time that importing all commands takes.  Only `--help` imports them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

#: Commands by panel of the help text: the file in cli/, and the functions or groups in it.
PANELS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "Brokers": {
        "network": ("up", "topology"),
        "broker": ("broker",),
        "relinking": ("network",),  # And network_commands.py, applying.py, network_plan.py.
        "load_balancing": ("balancing",),
        "croc_apply": ("croc",),  # It adds `apply` to those of croc.py.
        "whatif": ("whatif",),
    },
    "Publish and subscribe": {"pubsub": ("sub", "pub", "adv", "explain"), "why": ("why",)},
    "Coordinator": {"coordinator": ("coordinator", "brokers"), "moves": ("move", "drain")},
    "Data cluster": {"datacluster": ("datacluster", "execute", "load", "dataset", "channel")},
    "Demonstrations and experiments": {
        "demo": ("simulate", "demo"),
        "replay": ("replay",),
        "nemesis": ("nemesis",),
        "lab": ("lab",),
        "trace_dashboard": ("dashboard",),
    },
}
#: The file and the panel of each command.
PLACES: Mapping[str, tuple[str, str]] = {
    command: (file, panel)
    for panel, files in PANELS.items()
    for file, commands in files.items()
    for command in commands
}


class LazyCommands(TyperGroup):
    """The commands of `godwit`, each imported when it is used."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(PLACES)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | TyperGroup | None:
        if cmd_name not in PLACES:
            return None
        file, panel = PLACES[cmd_name]
        found = getattr(import_module(f"godwit.cli.{file}"), cmd_name)
        command = _group(found) if isinstance(found, typer.Typer) else _single(cmd_name, found)
        command.name = cmd_name
        command.rich_help_panel = panel
        return command


def _group(commands: typer.Typer) -> TyperGroup:
    return typer.main.get_group(commands)


def _single(name: str, function: Callable[..., None]) -> TyperCommand:
    alone = typer.Typer(add_completion=False)
    alone.command(name)(function)
    command = typer.main.get_command(alone)
    assert isinstance(command, TyperCommand)
    return command
