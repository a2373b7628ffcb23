"""`godwit dashboard`: the dashboard of a recorded trace.  That of a network is served beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
import uvloop

from godwit.api.dashboard_api import LISTEN
from godwit.cli.dashboard_serving import OpenPage, or_any_port, shown
from godwit.cli.extras import needs
from godwit.cli.signals import stop_event


def dashboard(
    trace: Annotated[
        Path,
        typer.Argument(
            help="Folder of a trace: of `godwit up --trace`, or of a run in the lab's cache."
        ),
    ],
    listen: Annotated[str, typer.Option(help="Address of the page, HOST:PORT.")] = LISTEN,
    open_page: OpenPage = False,
) -> None:
    """Replay a recorded trace in the dashboard, until Ctrl-C."""
    uvloop.run(_serve(trace, listen, open_page=open_page))


async def _serve(folder: Path, listen: str, *, open_page: bool) -> None:
    with needs("lab", "a replay"):
        from godwit.web.recorded_trace import read_trace  # noqa: PLC0415  pyarrow is optional.
        from godwit.web.replaying import Replay  # noqa: PLC0415

    stopped = stop_event()
    typer.echo(f"reading {folder} ...")
    replay = Replay(read_trace(folder), str(folder))
    async with or_any_port(replay.serve, listen) as url:
        typer.echo(f"dashboard   {url}")
        if open_page:
            shown(url)
        await stopped.wait()
