"""The terminal that commands print tables on."""

from __future__ import annotations

from rich.console import Console


def console() -> Console:
    """Prints texts of users and servers as they are: brackets in them are not markup."""
    return Console(markup=False)
