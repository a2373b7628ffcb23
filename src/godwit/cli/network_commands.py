"""The commands that change a running network: network show|drain|undrain|join|leave|restart|...

They ask a coordinator, which carries the change out, and show its progress until it is over.  A
command that is interrupted does not stop the change: `godwit network abort` does.
"""

from __future__ import annotations

import asyncio
import getpass
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import msgspec
import typer
import uvloop

from godwit.api import network_api
from godwit.api.network_api import (
    ChangeKind,
    ChangeRequest,
    ChangeState,
    NetworkChange,
    NetworkView,
)
from godwit.api.network_views import Known, network_view
from godwit.cli.change_options import (
    EVERY,
    LISTEN,
    MOVING,
    WAITING,
    At,
    ChangeOptions,
    with_change_options,
)
from godwit.cli.network_report import ChangeProgress, change_lines, history_table, view_lines
from godwit.cli.options import Json, LogLevel, Secret
from godwit.cli.terminal import console
from godwit.errors import GodwitError, UnreachableError, UsageError
from godwit.http.operations import Nothing

if TYPE_CHECKING:
    from godwit.http.http_client import HttpClient

network = typer.Typer(no_args_is_help=True, help="Show and change a running network.")

#: Between two looks at a change.
POLL_S = 0.3
#: A coordinator that does not answer may be restarted: so long is it asked again.
PATIENCE_S = 60.0

Broker: TypeAlias = Annotated[str, typer.Argument(help="Name of the broker.")]


# -- showing -----------------------------------------------------------------------------------


@network.command()
def show(
    where: Annotated[
        list[str] | None,
        typer.Argument(
            help="Coordinator, http://HOST:PORT; or a network file, or brokers, that are asked."
        ),
    ] = None,
    json: Json = False,
    secret: Secret = "",
    at: At = LISTEN,
) -> None:
    """Show brokers, links, clients and loads, the change that is under way, and what is missing.

    The exit code is 1 if something is missing.
    """
    view, errors = uvloop.run(_view(where or [at], secret))
    if json:
        typer.echo(msgspec.json.encode(view))
    else:
        for line in view_lines(view):
            typer.echo(line)
    for name, error in errors.items():
        typer.echo(f"{name} has not answered: {error}", err=True)
    if view.missing or errors:
        raise typer.Exit(code=1)


async def _view(where: Sequence[str], secret: str) -> tuple[NetworkView, dict[str, GodwitError]]:
    servers = _servers(where)
    answers = await asyncio.gather(*(_look(url, secret) for url in servers.values()))
    views = [each for each in answers if isinstance(each, NetworkView)]
    errors = {
        name: each
        for name, each in zip(servers, answers, strict=True)
        if isinstance(each, GodwitError)
    }
    if not views:
        raise UsageError(str(next(iter(errors.values()))))
    if len(views) == 1:
        return views[0], errors
    accounts = [broker.account for view in views for broker in view.brokers]
    return network_view({a.broker: Known(a) for a in accounts if a is not None}), errors


def _servers(where: Sequence[str]) -> dict[str, str]:
    """HTTP addresses by name."""
    if len(where) != 1 or "://" in where[0]:
        return {url: url for url in where}
    from godwit.cli.load_balancing import http_url  # noqa: PLC0415  Needed for a file only.
    from godwit.runtime.settings import load_network  # noqa: PLC0415

    settings = load_network(Path(where[0]))
    found = {each.id: http_url(each) for each in settings.broker if each.http is not None}
    if not found:
        raise UsageError(f"{where[0]}: no broker has `http`, so none can be asked")
    return found


async def _look(url: str, secret: str) -> NetworkView | GodwitError:
    from godwit.http.http_client import HttpClient  # noqa: PLC0415  Few commands need HTTP.

    try:
        async with HttpClient(url, secret=secret, attempts=1) as server:
            return await server.call(network_api.NETWORK, Nothing())
    except GodwitError as error:
        return error


@network.command()
def history(
    at: At = LISTEN,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Changes to show, at most.")] = 20,
    json: Json = False,
    secret: Secret = "",
) -> None:
    """Show the last changes: who asked for what, when, how long it took, what came of it."""

    async def fetched() -> network_api.ChangeList:
        async with _coordinator(at, secret) as server:
            request = network_api.WhichChanges(limit=limit)
            return await server.call(network_api.CHANGES, request)

    found = uvloop.run(fetched())
    if json:
        typer.echo(msgspec.json.encode(found))
    elif not found.changes:
        typer.echo("no change has been made yet")
    else:
        console().print(history_table(found.changes))


# -- changing ----------------------------------------------------------------------------------


@network.command()
@with_change_options(*MOVING)
def drain(broker: Broker, options: ChangeOptions) -> None:
    """Move the clients of a broker to others, and admit no new ones there.

    The exit code is 1 if some could not be moved: the broker stays drained.
    """
    change_network(options.request(ChangeKind.DRAIN, [broker]), options)


@network.command()
@with_change_options(*EVERY)
def undrain(broker: Broker, options: ChangeOptions) -> None:
    """Admit clients to a broker again, also while it is being drained.

    Clients that have moved stay where they are.
    """
    good = (ChangeState.DONE, ChangeState.TAKEN_BACK, ChangeState.PROPOSED)
    change_network(options.request(ChangeKind.UNDRAIN, [broker]), options, good=good)


@network.command()
@with_change_options(*MOVING)
def leave(broker: Broker, options: ChangeOptions) -> None:
    """Drain a broker with one link, and stop it for good, without a gap."""
    change_network(options.request(ChangeKind.LEAVE, [broker]), options)


@network.command()
@with_change_options(*MOVING)
def restart(
    options: ChangeOptions,
    brokers: Annotated[list[str] | None, typer.Argument(help="Names of the brokers.")] = None,
    all: Annotated[bool, typer.Option("--all", help="All brokers, one after the other.")] = False,
    drains: Annotated[
        bool, typer.Option("--drain/--no-drain", help="Move the clients away before, and ...")
    ] = True,
    returns: Annotated[
        bool, typer.Option("--return/--no-return", help="... back when the broker is back.")
    ] = True,
) -> None:
    """Restart brokers one after the other, without loss; stop when one does not come back.

    Something must start them again: `godwit up --restart`, or a supervisor (--supervised).
    """
    if bool(brokers) == all:
        raise UsageError("name brokers, or say --all")
    names = brokers or uvloop.run(all_brokers(options.at, options.secret))
    request = options.request(ChangeKind.RESTART, names, drains=drains, returns=returns)
    change_network(request, options)


async def running_network(at: str, secret: str) -> NetworkView:
    async with _coordinator(at, secret) as server:
        view = await server.call(network_api.NETWORK, Nothing())
    if not view.brokers:
        raise UsageError(f"the coordinator at {at} knows no broker")
    return view


async def all_brokers(at: str, secret: str) -> list[str]:
    return [broker.broker for broker in (await running_network(at, secret)).brokers]


@network.command()
@with_change_options(*WAITING)
def join(
    broker: Broker,
    options: ChangeOptions,
    link: Annotated[str, typer.Option(help="Name of the broker that it links to.")],
    listen: Annotated[
        str | None,
        typer.Option(help="Run the broker here: address for clients and neighbours, HOST:PORT."),
    ] = None,
    http: Annotated[
        str, typer.Option(help="With --listen: address of its HTTP, HOST:PORT.")
    ] = "127.0.0.1:0",
    log_level: LogLevel = "info",
) -> None:
    """Let a broker join as a leaf: it gets clients when it has learnt everything.

    With --listen it runs here, until SIGTERM or Ctrl-C; else start it elsewhere, as the command
    says.
    """
    request = options.request(ChangeKind.JOIN, [broker], link=link)
    if listen is None or options.dry_run:
        change_network(request, options)
        return
    from godwit.cli.joining import run_joining  # noqa: PLC0415  Slow: it is a broker.

    at, secret = options.at, options.secret
    code = run_joining(request, at, secret, listen=listen, http=http, log_level=log_level)
    raise typer.Exit(code=code)


@network.command()
@with_change_options("dry_run", "at", "json", "secret")
def abort(options: ChangeOptions) -> None:
    """Take the change that is under way back, as far as that is possible."""
    dry_run, json = options.dry_run, options.json
    request = network_api.AbortRequest(dry_run=dry_run)

    async def aborted() -> NetworkChange:
        async with _coordinator(options.at, options.secret) as server:
            change = await server.call(network_api.ABORT_CHANGE, request)
            if dry_run:
                return change
            return await follow(server, change, ChangeProgress(is_quiet=json))

    change = uvloop.run(aborted())
    if dry_run and not json:
        typer.echo("a dry run: this change would be taken back")
    good = (ChangeState.RUNNING, ChangeState.TAKING_BACK) if dry_run else (ChangeState.TAKEN_BACK,)
    _report(change, json=json, good=good)


def change_network(
    request: ChangeRequest,
    options: ChangeOptions,
    *,
    good: Sequence[ChangeState] = (ChangeState.DONE, ChangeState.PROPOSED),
) -> None:
    request = msgspec.structs.replace(request, asked_by=asked_by())
    begun: list[int] = []

    async def changed() -> NetworkChange:
        async with _coordinator(options.at, options.secret) as server:
            change = await server.call(network_api.BEGIN_CHANGE, request)
            begun.append(change.number)
            return await follow(server, change, ChangeProgress(is_quiet=options.json))

    try:
        ended = uvloop.run(changed())
    except KeyboardInterrupt:
        for number in begun:
            typer.echo(
                f"\nchange {number} goes on: `godwit network show` says how far it is,"
                " `godwit network abort` takes it back",
                err=True,
            )
        raise
    _report(ended, json=options.json, good=good)


async def follow(
    server: HttpClient, change: NetworkChange, progress: ChangeProgress
) -> NetworkChange:
    """Show how far a change is, until it is over; the coordinator may be restarted meanwhile."""
    silent_s = 0.0
    progress.show(change)
    while not change.is_over:
        await asyncio.sleep(POLL_S)
        try:
            change = await server.call(network_api.CHANGE, network_api.WhichChange(change.number))
            silent_s = 0.0
        except UnreachableError as error:
            silent_s += POLL_S
            if silent_s > PATIENCE_S:
                raise UnreachableError(
                    f"the coordinator does not answer; change {change.number} goes on when it is"
                    f" back: {error}"
                ) from None
            continue
        progress.show(change)
    progress.end()
    return change


def _report(change: NetworkChange, *, json: bool, good: Sequence[ChangeState]) -> None:
    if json:
        typer.echo(msgspec.json.encode(change))
    else:
        for line in change_lines(change):
            typer.echo(line)
    if change.state not in good:
        raise typer.Exit(code=1)


def asked_by() -> str:
    """Who asks, for the history."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # A container may have no name for its user.
        user = "unknown"
    return f"{user}@{socket.gethostname()}"


def _coordinator(at: str, secret: str) -> HttpClient:
    from godwit.http.http_client import HttpClient  # noqa: PLC0415  Few commands need HTTP.

    return HttpClient(at, secret=secret)
