"""`godwit why`: the way of a publication through a running network, and why it ends where it does.

The dashboard is asked, which every `godwit up` and every coordinator has.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, NoReturn

import msgspec
import typer
import uvloop

from godwit.api.dashboard_api import (
    CLIENT_STORY,
    LISTEN,
    WHY,
    ClientStory,
    EndReason,
    PublicationStory,
    WhichClient,
    WhyQuestion,
)
from godwit.cli.extras import needs
from godwit.cli.options import Json, Secret
from godwit.errors import UsageError
from godwit.http.operations import Answer, Asked, Operation

#: Every broker on the way looks through its table.
ANSWER_S = 60.0
#: Subscriptions of one destination that are shown.
SHOWN_MAX = 2


def why(
    record: Annotated[
        str,
        typer.Argument(
            help="Record, as a JSON object or \\[attribute,value],...", show_default=False
        ),
    ] = "",
    publisher: Annotated[
        str, typer.Option("--from", help="Client that publishes it.", show_default="anyone")
    ] = "",
    broker: Annotated[
        str,
        typer.Option(help="Broker where it is published.", show_default="that of the publisher"),
    ] = "",
    to: Annotated[
        str, typer.Option(help="Subscriber that gets it, or does not.", show_default="everyone")
    ] = "",
    at: Annotated[
        str,
        typer.Option(envvar="GODWIT_DASHBOARD", help="Address of the dashboard, http://HOST:PORT."),
    ] = f"http://{LISTEN}",
    trace: Annotated[
        Path | None,
        typer.Option(
            help="Folder of a recorded trace: RECORD is a publication there, such as paul#17.",
            show_default=False,
        ),
    ] = None,
    client: Annotated[
        str,
        typer.Option(help="Instead of a record: the story of this client.", show_default=False),
    ] = "",
    json: Json = False,
    secret: Secret = "",
) -> None:
    """Say which way a publication would take now, and why a subscriber gets it or not.

    Nothing is published.  The exit code is 1 if --to does not get it.  With --client, say where a
    client is, what it has lost, and who moved it, when and why.  With --trace, say where a
    publication of a recorded trace was, and who got it.
    """
    if bool(record) == bool(client):
        raise UsageError("give a record, or --client NAME")
    if trace is not None:
        _tell_recorded(trace, record, to)
    if client:
        told = uvloop.run(_called(at, CLIENT_STORY, WhichClient(client), secret))
        for line in [msgspec.json.encode(told).decode()] if json else client_lines(told):
            typer.echo(line)
        raise typer.Exit(code=not told.places)
    if not publisher and not broker:
        raise UsageError("say who publishes it with --from CLIENT, or where with --broker NAME")
    question = WhyQuestion(record=record, publisher=publisher, broker=broker, to=to)
    story = uvloop.run(_called(at, WHY, question, secret))
    for line in [msgspec.json.encode(story).decode()] if json else story_lines(story):
        typer.echo(line)
    if to and story.reason not in (EndReason.DELIVERED, EndReason.CLIENT_AWAY):
        raise typer.Exit(code=1)


def _tell_recorded(folder: Path, publication: str, to: str) -> NoReturn:
    with needs("lab", "a recorded trace"):
        from godwit.web.recorded_stories import recorded_story  # noqa: PLC0415  pyarrow.
    story = recorded_story(folder, publication, to)
    for line in story.says:
        typer.echo(line)
    raise typer.Exit(code=bool(to) and to not in story.got_it)


async def _called(
    at: str, operation: Operation[Asked, Answer], question: Asked, secret: str
) -> Answer:
    from godwit.http.http_client import HttpClient  # noqa: PLC0415  Few commands need HTTP.

    async with HttpClient(at, secret=secret, answer_s=ANSWER_S) as dashboard:
        return await dashboard.call(operation, question)


def client_lines(story: ClientStory) -> Iterator[str]:
    yield from story.says
    for event in story.events:
        when = datetime.fromtimestamp(event.at_s).astimezone()
        yield f"  {when:%Y-%m-%d %H:%M:%S}  {event.by}: {event.says}"
    if story.silent:
        yield f"  no answer from {', '.join(story.silent)}"


def story_lines(story: PublicationStory) -> Iterator[str]:
    """The verdict, the story in sentences, and the subscriptions behind each hop."""
    if story.reason is not None:
        place = f", at {story.ends_at}" if story.ends_at else ""
        yield f"{story.to or story.publisher}: {story.reason.value}{place}"
    yield from (f"  {line}" for line in story.says)
    for hop in story.hops:
        for way in hop.account.explanation.goes_to:
            for each in way.because[:SHOWN_MAX]:
                yield f"    {hop.account.broker} -> {way.kind} {way.name}: {each.id} {each.filter}"
    if not story.to:
        yield f"  {len(story.delivered_to)} clients get it: {', '.join(sorted(story.delivered_to))}"
    if story.silent:
        yield f"  no answer from {', '.join(story.silent)}"
