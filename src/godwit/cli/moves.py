"""The commands that move clients from one broker to another: move, drain."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer
import uvloop

from godwit.api.broker_api import DRAIN, MOVE, DrainRequest, MoveOutcome, MoveRequest
from godwit.cli.options import Json
from godwit.errors import UsageError
from godwit.http.operations import Asked, Operation
from godwit.protocol.addresses import url_address

#: A broker answers when all the clients have moved, or their time is up.
ANSWER_S = 86_400.0


def move(
    clients: Annotated[list[str] | None, typer.Argument(help="Names of the clients.")] = None,
    at: Annotated[
        str, typer.Option(help="HTTP address of the broker that they are at, http://HOST:PORT.")
    ] = "",
    to: Annotated[str, typer.Option(help="Broker to move to, godwit://HOST:PORT.")] = "",
    broker: Annotated[
        str, typer.Option(help="Name of the broker that must answer at --to; any by default.")
    ] = "",
    count: Annotated[
        int, typer.Option(min=0, help="Number of clients to move, instead of names.")
    ] = 0,
    json: Json = False,
) -> None:
    """Move clients of a broker to another one.  The exit code is 1 if some have not moved."""
    if not at.startswith("http://") or not to:
        raise UsageError(
            "name the broker of the clients with --at http://HOST:PORT,"
            " and the broker to move to with --to godwit://HOST:PORT"
        )
    url_address(to)
    request = MoveRequest(address=to, broker=broker, clients=clients or [], count=count)
    _report(uvloop.run(_ask(at, MOVE, request)), json=json)


def drain(
    at: Annotated[str, typer.Option(help="HTTP address of the broker to empty, http://HOST:PORT.")],
    to: Annotated[str, typer.Option(help="Broker that takes its clients, godwit://HOST:PORT.")],
    broker: Annotated[
        str, typer.Option(help="Name of the broker that must answer at --to; any by default.")
    ] = "",
    json: Json = False,
) -> None:
    """Move all clients of a broker to another one and refuse new ones, so that it can be stopped.

    The exit code is 1 if some have not moved.
    """
    if not at.startswith("http://"):
        raise UsageError("name the broker to empty with --at http://HOST:PORT")
    url_address(to)
    request = DrainRequest(address=to, broker=broker)
    _report(uvloop.run(_ask(at, DRAIN, request)), json=json)


def _report(outcome: MoveOutcome, *, json: bool) -> None:
    if json:
        typer.echo(msgspec.json.encode(outcome))
    else:
        for name in outcome.moved:
            typer.echo(f"{name} moved")
        for name, why in outcome.stayed.items():
            typer.echo(f"{name} stayed: {why}", err=True)
        for name in outcome.unknown:
            typer.echo(f"{name} is not a client of this broker", err=True)
    if outcome.stayed or outcome.unknown:
        raise typer.Exit(code=1)


async def _ask(at: str, operation: Operation[Asked, MoveOutcome], request: Asked) -> MoveOutcome:
    from godwit.http.http_client import HttpClient  # noqa: PLC0415  Few commands need HTTP.

    async with HttpClient(at, answer_s=ANSWER_S) as broker:
        return await broker.call(operation, request)
