"""Commands for the data cluster: run it, make datasets, feeds and channels, look at them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
import uvloop
from rich.console import Console
from rich.table import Table

from godwit.cli.running import Level, Secret, told_to_stop
from godwit.config import changed
from godwit.errors import UsageError
from godwit.network.logs import LogFormat, configure
from godwit.network.processes import ANSWERS
from godwit.rest.operations import Answer, Asked, Nothing, Operation

if TYPE_CHECKING:
    from godwit.datacluster.settings import DataClusterSettings
    from godwit.rest import datacluster as api

Url = Annotated[
    str,
    typer.Option(envvar="GODWIT_DATACLUSTER", help="Of the data cluster: http://HOST:PORT."),
]
LOCAL = "http://127.0.0.1:7600"
Json = Annotated[bool, typer.Option("--json", help="JSON, for other programs.")]
Name = Annotated[str, typer.Argument(help="Of a channel.")]

dataset = typer.Typer(help="Datasets of a data cluster.", no_args_is_help=True)
channel = typer.Typer(help="Channels of a data cluster.", no_args_is_help=True)


def datacluster(
    listen: Annotated[
        str | None, typer.Option(help="HOST:PORT; 127.0.0.1:7600 unless it is set.")
    ] = None,
    folder: Annotated[
        str | None, typer.Option(help="For all that it keeps; ./datacluster unless it is set.")
    ] = None,
    broker: Annotated[
        str | None, typer.Option(help="Where feeds subscribe: godwit://HOST:PORT.")
    ] = None,
    master: Annotated[
        str | None, typer.Option(help="Where Spark runs: local[N], or spark://HOST:PORT.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="A file with settings; options go before it.")
    ] = None,
    secret: Secret = "",
    log_level: Level = "info",
    log_format: Annotated[LogFormat, typer.Option(help="text or json.")] = "text",
    leash: Annotated[bool, typer.Option(help="Stop when standard input is closed.")] = False,
) -> None:
    """Run the data cluster: datasets, feeds and channels on Spark, until SIGTERM or Ctrl-C."""
    try:
        from godwit.datacluster.settings import (  # noqa: PLC0415  Slow, and not installed for all.
            DataClusterSettings,
            load_settings,
        )
    except ImportError as error:
        raise UsageError(f"{error}: pip install 'godwit[datacluster]'") from None
    configure(log_level, log_format)
    settings = changed(
        DataClusterSettings() if config is None else load_settings(config),
        listen=listen,
        folder=folder,
        broker=broker,
        master=master,
        secret=secret or None,
    )
    uvloop.run(_serve(settings, leash=leash))


async def _serve(settings: DataClusterSettings, *, leash: bool) -> None:
    from godwit.datacluster.server import DataClusterServer  # noqa: PLC0415

    stopped = told_to_stop(leash=leash)
    typer.echo("starting Spark ...", err=True)
    async with DataClusterServer(settings) as server:
        typer.echo(f"data cluster {ANSWERS} {server.url}")
        await stopped.wait()


def execute(
    statements: Annotated[
        list[str] | None, typer.Argument(help="Statements; from standard input without any.")
    ] = None,
    url: Url = LOCAL,
    secret: Secret = "",
) -> None:
    """Make or drop datasets, feeds and channels.  Statements in a file are ended by ';'."""
    from godwit.rest import datacluster as api  # noqa: PLC0415

    texts = statements or [text for text in sys.stdin.read().split(";\n") if text.strip()]
    for text in texts:
        done = _ask(url, api.STATEMENT, api.Statement(text.strip().removesuffix(";")), secret)
        typer.echo(done.what)


def load(
    dataset: Annotated[str, typer.Argument(help="A static dataset.")],
    file: Annotated[Path, typer.Argument(help="CSV, JSON lines or Parquet.", exists=True)],
    url: Url = LOCAL,
    secret: Secret = "",
) -> None:
    """Load a static dataset from a file, in the place of what it had."""
    from godwit.rest import datacluster as api  # noqa: PLC0415

    done = _ask(url, api.LOAD, api.Load(dataset, str(file.resolve())), secret)
    typer.echo(done.what)


@dataset.command("list")
def list_datasets(url: Url = LOCAL, json: Json = False) -> None:
    """Show all datasets, and how much is in them."""
    from godwit.rest import datacluster as api  # noqa: PLC0415

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
    Console().print(table)


@channel.command("list")
def list_channels(url: Url = LOCAL, json: Json = False) -> None:
    """Show all channels, and their last execution."""
    from godwit.rest import datacluster as api  # noqa: PLC0415

    found = _ask(url, api.CHANNELS, Nothing()).channels
    if json:
        typer.echo(msgspec.json.encode(found))
        return
    table = Table("channel", "every", box=None)
    for name in ("subscriptions", "execution", "rows", "took"):
        table.add_column(name, justify="right")
    table.add_column("state")
    for each in found:
        every = "batch" if each.every_s is None else f"{each.every_s:g} s"
        last = each.last[0] if each.last else None
        cells = ("", "", "", "") if last is None else _cells(last)
        table.add_row(f"{each.name}({', '.join(each.parameters)})", every,
                      f"{each.subscriptions:,}", *cells)  # fmt: skip
    Console().print(table)


@channel.command()
def show(name: Name, url: Url = LOCAL, json: Json = False) -> None:
    """Show a channel, with its last executions and what they took."""
    from godwit.rest import datacluster as api  # noqa: PLC0415

    found = _ask(url, api.CHANNEL, api.Named(name))
    if json:
        typer.echo(msgspec.json.encode(found))
        return
    parameters = ", ".join(f"{each} {kind}" for each, kind in found.parameters.items())
    typer.echo(
        f"{found.name}({parameters}), {found.subscriptions:,} subscriptions\n{found.query}\n"
    )
    table = Table("execution", "rows", "took", "state", box=None)
    for name_ in ("subscriptions", "planning", "running", "writing"):
        table.add_column(name_, justify="right")
    for each in found.last:
        table.add_row(*_cells(each), *(f"{s * 1000:.0f} ms" for s in each.timings_s.values()))
    Console().print(table)


@channel.command()
def explain(name: Name, url: Url = LOCAL, json: Json = False, secret: Secret = "") -> None:
    """Show the one statement that serves all subscriptions, and Spark's plan for it."""
    from godwit.rest import datacluster as api  # noqa: PLC0415

    found = _ask(url, api.EXPLAIN, api.Named(name), secret)
    if json:
        typer.echo(msgspec.json.encode(found))
        return
    typer.echo(found.statement)
    typer.echo(found.plan or "\nnot executed yet")


def _cells(last: api.ExecutionShown) -> tuple[str, str, str, str]:
    took = "" if last.took_s is None else f"{last.took_s:.2f} s"
    state = f"{last.state}: {last.error}" if last.error else last.state
    return str(last.execution), f"{last.rows:,}", took, state


def _ask(url: str, operation: Operation[Asked, Answer], request: Asked, secret: str = "") -> Answer:
    from godwit.rest.calling import Caller  # noqa: PLC0415

    async def ask() -> Answer:
        async with Caller(url, secret=secret, answer_s=120.0) as server:
            return await server.call(operation, request)

    return uvloop.run(ask())
