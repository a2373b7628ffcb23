"""The dashboard beside another command: of `godwit up`, and of `godwit coordinator`."""

from __future__ import annotations

import contextlib
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from godwit.api.dashboard_api import LISTEN, OFF
from godwit.errors import UsageError

if TYPE_CHECKING:
    from godwit.web.directory import Directory

DashboardAt: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--dashboard", help="Address of the dashboard, HOST:PORT, or `off`.", show_default=LISTEN
    ),
]


OpenPage: TypeAlias = Annotated[
    bool, typer.Option("--open", help="Show the dashboard in the browser of this machine.")
]


@contextlib.asynccontextmanager
async def dashboard_at(listen: str, directory: Directory) -> AsyncIterator[str | None]:
    """Serve the dashboard inside the context, which is its URL; None if it is off."""
    if listen == OFF:
        yield None
        return
    from godwit.web.dashboard import Dashboard  # noqa: PLC0415  Only where it is served.

    async with or_any_port(lambda at: Dashboard(directory).serve(at), listen) as url:
        yield url


@contextlib.asynccontextmanager
async def or_any_port(
    serve: Callable[[str], AbstractAsyncContextManager[str]], listen: str
) -> AsyncIterator[str]:
    """`serve` there; if the default port is taken, as by a second network, at any free one."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            url = await stack.enter_async_context(serve(listen))
        except UsageError:
            if listen != LISTEN:
                raise
            host = LISTEN.rpartition(":")[0]
            url = await stack.enter_async_context(serve(f"{host}:0"))
        yield url


def shown(url: str) -> None:
    """Show it in a browser, if there is one."""
    if not webbrowser.open(url):
        typer.echo("there is no browser on this machine", err=True)
