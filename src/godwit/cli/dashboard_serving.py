"""The dashboard beside another command: of `godwit up`, and of `godwit coordinator`."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
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


@contextlib.asynccontextmanager
async def dashboard_at(listen: str, directory: Directory) -> AsyncIterator[str | None]:
    """Serve the dashboard inside the context, which is its URL; None if it is off.

    If the default port is taken, as by a second network on this machine, any free one is used.
    """
    if listen == OFF:
        yield None
        return
    from godwit.web.dashboard import Dashboard  # noqa: PLC0415  Only where it is served.

    async with contextlib.AsyncExitStack() as stack:
        try:
            url = await stack.enter_async_context(Dashboard(directory).serve(listen))
        except UsageError:
            if listen != LISTEN:
                raise
            host = LISTEN.rpartition(":")[0]
            url = await stack.enter_async_context(Dashboard(directory).serve(f"{host}:0"))
        yield url
