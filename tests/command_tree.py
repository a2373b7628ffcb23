"""The commands of `godwit`, which are imported when they are looked up."""

from __future__ import annotations

from functools import cache
from typing import Any

from typer.core import TyperGroup


@cache  # Making a command takes long, and tests look up each of them often.
def subcommands(group: TyperGroup) -> dict[str, Any]:
    """Commands and groups of a group, by name."""
    context: Any = None  # Neither our group nor Typer's reads it.
    return {name: group.get_command(context, name) for name in group.list_commands(context)}
