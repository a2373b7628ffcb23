"""The commands for the load balancer of a running network: balancing show|pause|resume|abort.

They ask every broker of a network file, or brokers at given addresses, all at the same time.  A
broker that does not answer does not keep the others from answering: it gets a line on standard
error, and the exit code is 1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import msgspec
import typer
import uvloop

from godwit.api.balancing_api import (
    BALANCING,
    COMMAND_BALANCING,
    BalancingAccount,
    BalancingCommand,
    Command,
    DecisionView,
)
from godwit.cli.options import Json, Secret
from godwit.errors import GodwitError, UsageError
from godwit.http.operations import Nothing
from godwit.protocol.addresses import address
from godwit.runtime.settings import EVERYWHERE, BrokerSettings, NetworkSettings, load_network

if TYPE_CHECKING:
    from godwit.http.http_client import HttpClient

balancing = typer.Typer(
    no_args_is_help=True, help="Show and control how brokers balance their load."
)

#: How long a broker may take to answer.
ANSWER_S = 5.0
#: Decisions of each broker that `show` prints.
DECISIONS_SHOWN = 5

Where: TypeAlias = Annotated[
    list[str],
    typer.Argument(help="Network file, or HTTP addresses of brokers, http://HOST:PORT."),
]
DryRun: TypeAlias = Annotated[
    Literal["on", "off"] | None,
    typer.Option(help="Whether brokers only propose from now on; as it is by default."),
]


@balancing.command()
def show(
    where: Where,
    decisions: Annotated[
        int, typer.Option(min=0, max=50, help="Number of decisions of each broker to show.")
    ] = DECISIONS_SHOWN,
    json: Json = False,
    secret: Secret = "",
) -> None:
    """Show role, status, load and session of each broker, and its last decisions."""
    _tell(where, [], decisions=decisions, json=json, secret=secret)


@balancing.command()
def pause(where: Where, dry_run: DryRun = None, json: Json = False, secret: Secret = "") -> None:
    """Let no session begin; those that have begun go on."""
    _tell(where, ["pause", *_dry_run(dry_run)], json=json, secret=secret)


@balancing.command()
def resume(where: Where, dry_run: DryRun = None, json: Json = False, secret: Secret = "") -> None:
    """Let sessions begin again; with --dry-run on, without moving any client."""
    _tell(where, [*_dry_run(dry_run), "resume"], json=json, secret=secret)


@balancing.command()
def abort(where: Where, json: Json = False, secret: Secret = "") -> None:
    """End the sessions that are going on.  Clients that were asked may still move.

    New sessions begin at the next detection: to prevent that, use `pause` first.
    """
    _tell(where, ["abort"], json=json, secret=secret)


def _dry_run(state: Literal["on", "off"] | None) -> list[Command]:
    if state is None:
        return []
    return ["dry-run on" if state == "on" else "dry-run off"]


def _tell(
    where: Sequence[str],
    commands: Sequence[Command],
    *,
    json: bool,
    secret: str,
    decisions: int = 0,
) -> None:
    servers, secret = _servers(where, secret)
    answers = uvloop.run(_ask_all(servers, commands, secret))
    accounts = [each for each in answers.values() if isinstance(each, BalancingAccount)]
    errors = {name: each for name, each in answers.items() if isinstance(each, GodwitError)}
    if json:
        found = {"brokers": accounts, "errors": {name: str(e) for name, e in errors.items()}}
        typer.echo(msgspec.json.encode(found))
    else:
        for line in [*_lines(accounts), *_obstacles(accounts), *_decisions(accounts, decisions)]:
            typer.echo(line)
        for name, error in errors.items():
            typer.echo(f"{name} has not answered as it should: {error}", err=True)
    if errors:
        raise typer.Exit(code=1)


# -- which brokers -----------------------------------------------------------------------------


def _servers(where: Sequence[str], secret: str) -> tuple[dict[str, str], str]:
    """HTTP addresses by name, and the secret of the network."""
    urls = {text: text for text in where if "://" in text}
    files = [text for text in where if "://" not in text]
    if len(files) > 1 or (files and urls):
        raise UsageError("name one network file, or HTTP addresses of brokers, not both")
    if not files:
        return urls, secret
    network = load_network(Path(files[0]))
    _check_network(network, files[0])
    return {each.id: http_url(each) for each in network.broker}, secret or network.secret


def _check_network(network: NetworkSettings, file: str) -> None:
    if network.balancing is None:
        raise UsageError(f"{file} has no table [balancing]: its brokers do not balance their load")
    silent = [each.id for each in network.broker if each.http is None]
    if silent:
        raise UsageError(
            f"{file}: brokers without `http` cannot be asked: {', '.join(silent)};"
            " set it, and restart them"
        )
    unknown = [each.id for each in network.broker if address(str(each.http))[1] == 0]
    if unknown:
        raise UsageError(
            f"{file}: `http` of {', '.join(unknown)} is any free port; give them one, or name the"
            " addresses that the brokers have printed"
        )


def http_url(broker: BrokerSettings) -> str:
    host, port = address(str(broker.http))
    if host in EVERYWHERE:
        host = "127.0.0.1" if broker.address is None else address(broker.address)[0]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


# -- asking ------------------------------------------------------------------------------------


async def _ask_all(
    servers: dict[str, str], commands: Sequence[Command], secret: str
) -> dict[str, BalancingAccount | GodwitError]:
    answers = await asyncio.gather(*(_ask(url, commands, secret) for url in servers.values()))
    return dict(zip(servers, answers, strict=True))


async def _ask(
    url: str, commands: Sequence[Command], secret: str
) -> BalancingAccount | GodwitError:
    from godwit.http.http_client import HttpClient  # noqa: PLC0415  Few commands need HTTP.

    try:
        async with HttpClient(url, secret=secret, answer_s=ANSWER_S, attempts=1) as broker:
            return await _asked(broker, commands)
    except GodwitError as error:
        return error


async def _asked(broker: HttpClient, commands: Sequence[Command]) -> BalancingAccount:
    if not commands:
        return await broker.call(BALANCING, Nothing())
    for command in commands:
        account = await broker.call(COMMAND_BALANCING, BalancingCommand(command))
    return account


# -- showing -----------------------------------------------------------------------------------


#: Numbers are aligned to the right.
COLUMNS = {
    "broker": "<", "role": "<", "cluster": "<", "status": "<", "Ir": ">", "d ms": ">", "Or": ">",
    "memory": ">", "subscriptions": ">", "sessions": ">", "session": "<",
}  # fmt: skip


def _lines(accounts: Sequence[BalancingAccount]) -> Iterator[str]:
    """A table that stays in one piece, also in a narrow terminal, for grep."""
    rows = [list(COLUMNS), *map(_cells, accounts)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, COLUMNS.values(), widths, strict=True)
        yield "  ".join(f"{cell:{side}{width}}" for cell, side, width in cells).rstrip()


def _cells(account: BalancingAccount) -> list[str]:
    load = account.load
    loads = [""] * 5
    if load is not None:
        loads = [
            _number(load.input),
            _number(None if load.match_s is None else 1_000 * load.match_s),
            _number(load.output),
            _number(load.memory),
            str(load.subscriptions) if account.role == "edge" else "",
        ]
    return [
        account.broker,
        account.role,
        account.cluster or "",
        _status(account),
        *loads,
        str(account.sessions),
        _session(account),
    ]


def _status(account: BalancingAccount) -> str:
    words = [account.status or "-"]
    words += ["paused"] if account.is_paused else []
    words += ["dry run"] if account.dry_run else []
    return ", ".join(words)


def _number(value: float | None) -> str:
    return "unlimited" if value is None else f"{value:.3f}"


def _session(account: BalancingAccount) -> str:
    session = account.session
    if session is None:
        return ""
    metric = "" if session.metric is None else f"{session.metric}, "
    return f"with {session.partner}: {metric}{session.phase}"


def _obstacles(accounts: Sequence[BalancingAccount]) -> Iterator[str]:
    for account in accounts:
        if account.cannot_be_balanced is not None:
            yield f"{account.broker}: {account.cannot_be_balanced}"


def _decisions(accounts: Sequence[BalancingAccount], count: int) -> Iterator[str]:
    """The last decisions of each broker, in the order of their times."""
    if not count:
        return
    last = [(account.broker, each) for account in accounts for each in account.decisions[-count:]]
    for broker, decision in sorted(last, key=lambda pair: pair[1].at_s):
        yield f"{broker}: {_said(decision)}"


def _said(decision: DecisionView) -> str:
    reason = ", ".join(
        f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
        for key, value in decision.reason.items()
    )
    way = f"{decision.source} to {decision.target}" if decision.target else decision.source
    return f"{decision.action} {decision.subject} ({way}): {reason}"
