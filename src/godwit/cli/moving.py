"""The command that sends clients of one broker to another."""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import Annotated

import msgspec
import typer

from godwit.errors import UnreachableError, UsageError
from godwit.rest.moving import MoveOutcome, MoveRequest
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
    outcome = _post(f"{at.rstrip('/')}/move", request)
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


def _post(url: str, request: MoveRequest) -> MoveOutcome:
    asked = urllib.request.Request(  # noqa: S310  An http:// address, as checked.
        url, msgspec.json.encode(request), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(asked, timeout=ANSWER_S) as answer:  # noqa: S310
            return msgspec.json.decode(answer.read(), type=MoveOutcome)
    except urllib.error.HTTPError as error:
        raise UsageError(f"{url}: {error.code}: {error.read().decode()}") from None
    except (OSError, ValueError, msgspec.DecodeError) as error:
        raise UnreachableError(f"{url}: {error}") from None
