"""The command that sends clients of one broker to another."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer
import uvloop

from godwit.errors import UsageError
from godwit.rest.moving import MOVE, MoveOutcome, MoveRequest
from godwit.wire.addresses import url_address

#: A broker answers when all its clients have moved, or have had their time.
ANSWER_S = 86_400.0


def move(
    clients: Annotated[list[str] | None, typer.Argument(help="Which of the broker's.")] = None,
    at: Annotated[str, typer.Option(help="The broker they are at: its http://HOST:PORT.")] = "",
    to: Annotated[str, typer.Option(help="Where they should go: godwit://HOST:PORT.")] = "",
    broker: Annotated[str, typer.Option(help="Who should answer there; anybody without.")] = "",
    count: Annotated[int, typer.Option(min=0, help="So many of them, in place of names.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Ask clients of a broker to move to another one, and say who did; exit 1 if not all."""
    if not at.startswith("http://") or not to:
        raise UsageError("say where they are, --at http://HOST:PORT, and where --to they should go")
    url_address(to)
    request = MoveRequest(address=to, broker=broker, clients=clients or [], count=count)
    outcome = uvloop.run(_ask(at, request))
    if json:
        typer.echo(msgspec.json.encode(outcome))
    else:
        for name in outcome.moved:
            typer.echo(f"{name} moved")
        for name, why in outcome.stayed.items():
            typer.echo(f"{name} stayed: {why}", err=True)
        for name in outcome.unknown:
            typer.echo(f"{name} is not there", err=True)
    if outcome.stayed or outcome.unknown:
        raise typer.Exit(code=1)


async def _ask(at: str, request: MoveRequest) -> MoveOutcome:
    from godwit.rest.calling import Caller  # noqa: PLC0415  Few commands need HTTP.

    async with Caller(at, answer_s=ANSWER_S) as broker:
        return await broker.call(MOVE, request)
