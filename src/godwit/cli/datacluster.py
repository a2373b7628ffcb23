"""Commands for the data cluster: run it, create datasets, feeds and channels, show them."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import msgspec
import typer
import uvloop
from rich.table import Table

from godwit.cli.extras import needs
from godwit.cli.options import Config, Json, Leash, LogForm, LogLevel, Secret
from godwit.cli.signals import stop_event
from godwit.cli.terminal import console
from godwit.config import changed
from godwit.http.operations import Answer, Asked, Nothing, Operation
from godwit.runtime.logs import configure
from godwit.runtime.processes import ANSWERS

if TYPE_CHECKING:
    from godwit.api import datacluster_api as api
    from godwit.datacluster.server import DataClusterServer

Url: TypeAlias = Annotated[
    str,
    typer.Option(
        envvar="GODWIT_DATACLUSTER", help="Address of the data cluster, http://HOST:PORT."
    ),
]
WHAT = "the data cluster"
LOCAL = "http://127.0.0.1:7600"
Name: TypeAlias = Annotated[str, typer.Argument(help="Name of the channel.")]

dataset = typer.Typer(help="Show the datasets of a data cluster.", no_args_is_help=True)
channel = typer.Typer(
    help="Show the channels of a data cluster; skip a failing execution.", no_args_is_help=True
)


def datacluster(
    listen: Annotated[
        str | None,
        typer.Option(help="Address to serve on, HOST:PORT.", show_default="127.0.0.1:7600"),
    ] = None,
    folder: Annotated[
        str | None, typer.Option(help="Folder for all data.", show_default="./datacluster")
    ] = None,
    broker: Annotated[
        str | None, typer.Option(help="Broker at which feeds subscribe, godwit://HOST:PORT.")
    ] = None,
    master: Annotated[
        str | None, typer.Option(help="Spark master: local\\[N] or spark://HOST:PORT.")
    ] = None,
    standby: Annotated[
        bool, typer.Option(help="Wait until the process that has the folder ends or is silent.")
    ] = False,
    config: Config = None,
    secret: Secret = "",
    log_level: LogLevel = "info",
    log_format: LogForm = "text",
    leash: Leash = False,
) -> None:
    """Run the data cluster: datasets, feeds and channels on Spark, until SIGTERM or Ctrl-C."""
    with needs("datacluster", WHAT):
        from godwit.datacluster.settings import (  # noqa: PLC0415  Slow, and not installed for all.
            DataClusterSettings,
            load_settings,
        )
    configure(log_level, log_format)
    settings = changed(
        DataClusterSettings() if config is None else load_settings(config),
        listen=listen,
        folder=folder,
        broker=broker,
        master=master,
        standby=standby or None,
        secret=secret or None,
    )
    with needs("datacluster", WHAT):
        from godwit.datacluster.server import DataClusterServer  # noqa: PLC0415
    uvloop.run(_serve(DataClusterServer(settings), leash=leash))


async def _serve(starting: DataClusterServer, *, leash: bool) -> None:
    stopped = stop_event(leash=leash)
    typer.echo("starting Spark ...", err=True)
    async with contextlib.AsyncExitStack() as stack:
        entering = asyncio.create_task(stack.enter_async_context(starting))
        stopping = asyncio.create_task(stopped.wait())
        await asyncio.wait({entering, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if stopping.done() and starting.settings.standby:
            entering.cancel()  # A standby that is not needed.
        with contextlib.suppress(asyncio.CancelledError):
            server = await entering
            typer.echo(f"data cluster {ANSWERS} {server.url}")
        await stopping


def execute(
    statements: Annotated[
        list[str] | None,
        typer.Argument(help="Statements; without any, they are read from standard input."),
    ] = None,
    url: Url = LOCAL,
    secret: Secret = "",
) -> None:
    """Create or drop datasets, feeds and channels.  On standard input, ';' separates statements."""
    from godwit.api import datacluster_api as api  # noqa: PLC0415

    for text in statements or _separate(sys.stdin.read()):
        done = _ask(url, api.STATEMENT, api.Statement(text.strip().removesuffix(";")), secret)
        typer.echo(done.what)


def _separate(text: str) -> list[str]:
    """The statements of a file."""
    if ";" not in text.rstrip().removesuffix(";"):
        return [text] if text.strip() else []
    with needs("datacluster", "a file with several statements"):
        from godwit.datacluster.ddl.splitting import split  # noqa: PLC0415
    return split(text)


def load(
    dataset: Annotated[str, typer.Argument(help="Name of a static dataset.")],
    file: Annotated[Path, typer.Argument(help="CSV, JSON lines or Parquet file.", exists=True)],
    url: Url = LOCAL,
    secret: Secret = "",
) -> None:
    """Load a static dataset from a file, which replaces its records."""
    from godwit.api import datacluster_api as api  # noqa: PLC0415

    done = _ask(url, api.LOAD, api.LoadFile(dataset, str(file.resolve())), secret)
    typer.echo(done.what)


@dataset.command("list")
def list_datasets(url: Url = LOCAL, json: Json = False) -> None:
    """Show all datasets and their sizes."""
    from godwit.api import datacluster_api as api  # noqa: PLC0415

    found = _ask(url, api.DATASETS, Nothing()).datasets
    if json:
        typer.echo(msgspec.json.encode(found))
        return
    table = Table("dataset", "columns", "key", box=None)
    for name in ("records", "batches", "files", "bytes", "waiting"):
        table.add_column(name, justify="right")
    for each in found:
        columns = ", ".join(f"{name} {kind}" for name, kind in each.columns.items())
        figures = (each.rows, each.batches, each.files, each.size_bytes, each.waiting_bytes)
        key = "static" if each.is_static and each.key is None else each.key or ""
        table.add_row(each.name, columns, key, *(f"{figure:,}" for figure in figures))
    console().print(table)


@channel.command("list")
def list_channels(url: Url = LOCAL, json: Json = False) -> None:
    """Show all channels and their last execution."""
    from godwit.api import datacluster_api as api  # noqa: PLC0415

    found = _ask(url, api.CHANNELS, Nothing()).channels
    if json:
        typer.echo(msgspec.json.encode(found))
        return
    table = Table("channel", "every", box=None)
    for name in ("subscriptions", "unread batches", "execution", "rows", "took"):
        table.add_column(name, justify="right")
    table.add_column("state")
    for each in found:
        every = "batch" if each.every_s is None else f"{each.every_s:g} s"
        last = each.last[0] if each.last else None
        cells = ("", "", "", "") if last is None else _cells(last)
        table.add_row(f"{each.name}({', '.join(each.parameters)})", every,
                      f"{each.subscriptions:,}", f"{each.unread_batches:,}", *cells)  # fmt: skip
    console().print(table)


@channel.command()
def show(name: Name, url: Url = LOCAL, json: Json = False) -> None:
    """Show a channel, its last executions, and how long they took."""
    from godwit.api import datacluster_api as api  # noqa: PLC0415

    found = _ask(url, api.CHANNEL, api.Named(name))
    if json:
        typer.echo(msgspec.json.encode(found))
        return
    parameters = ", ".join(f"{each} {kind}" for each, kind in found.parameters.items())
    typer.echo(
        f"{found.name}({parameters}), {found.subscriptions:,} subscriptions,"
        f" {found.unread_batches:,} unread batches\n{found.query}\n"
    )
    table = Table("execution", "rows", "took", "state", box=None)
    for name_ in ("subscriptions", "planning", "running", "writing"):
        table.add_column(name_, justify="right")
    for each in found.last:
        table.add_row(*_cells(each), *(f"{s * 1000:.0f} ms" for s in each.timings_s.values()))
    console().print(table)


@channel.command()
def explain(name: Name, url: Url = LOCAL, json: Json = False, secret: Secret = "") -> None:
    """Show the statement that serves all subscriptions, and Spark's plan for it."""
    from godwit.api import datacluster_api as api  # noqa: PLC0415

    found = _ask(url, api.EXPLAIN, api.Named(name), secret)
    if json:
        typer.echo(msgspec.json.encode(found))
        return
    typer.echo(found.statement)
    typer.echo(found.plan or "\nnot executed yet")


@channel.command()
def skip(name: Name, url: Url = LOCAL, json: Json = False, secret: Secret = "") -> None:
    """Skip an execution that keeps failing, and the records that it was to read."""
    from godwit.api import datacluster_api as api  # noqa: PLC0415

    skipped = _ask(url, api.SKIP_EXECUTION, api.SkipExecution(name), secret)
    if json:
        typer.echo(msgspec.json.encode(skipped))
        return
    failure = f" after {skipped.attempts} attempts: {skipped.error}" if skipped.error else ""
    typer.echo(f"skipped execution {skipped.execution} of {name}{failure}")


@channel.command()
def resume(name: Name, url: Url = LOCAL, secret: Secret = "") -> None:
    """Let a channel go on that was stopped: Spark died, or its result was too large."""
    from godwit.api import datacluster_api as api  # noqa: PLC0415

    done = _ask(url, api.RESUME_CHANNEL, api.ResumeChannel(name), secret)
    typer.echo(f"{name} goes on with {done.what}")


def _cells(last: api.ExecutionView) -> tuple[str, str, str, str]:
    took = "" if last.took_s is None else f"{last.took_s:.2f} s"
    state = f"{last.state}: {last.error}" if last.error else last.state
    return str(last.execution), f"{last.rows:,}", took, state


def _ask(url: str, operation: Operation[Asked, Answer], request: Asked, secret: str = "") -> Answer:
    from godwit.http.http_client import HttpClient  # noqa: PLC0415

    async def ask() -> Answer:
        async with HttpClient(url, secret=secret, answer_s=120.0) as server:
            return await server.call(operation, request)

    return uvloop.run(ask())
