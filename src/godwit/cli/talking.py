"""Commands that talk to a broker: publish, subscribe, advertise; and one that explains a filter."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from asyncio import CancelledError
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Annotated, Any

import msgspec
import typer
import uvloop

from godwit.client import Client, Event, connect
from godwit.content.filters import Filter
from godwit.content.text import format_record, parse_record
from godwit.content.values import Record, Value, check_record
from godwit.errors import ContentError, UsageError

#: Of standard input, read before they are published.
LINES_AHEAD_MAX = 1_000

Url = Annotated[
    str,
    typer.Argument(
        help="Of a broker, godwit://HOST:PORT, or of a coordinator, bcs+http://HOST:PORT."
    ),
]
Name = Annotated[str | None, typer.Option(help="The client's; it makes one up without.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object a line, for pipes.")]


def sub(
    url: Url,
    filters: Annotated[list[str], typer.Argument(help="What to listen for; any of them.")],
    name: Name = None,
    count: Annotated[int | None, typer.Option(min=1, help="Stop after so many.")] = None,
    json: Json = False,
) -> None:
    """Print what is published, until Ctrl-C."""
    wanted = [Filter.parse(filter) for filter in filters]
    _run(_sub(url, wanted, name, count, _as_json if json else _as_text))


async def _sub(
    url: str,
    filters: list[Filter],
    name: str | None,
    count: int | None,
    show: Callable[[Event], str],
) -> None:
    async with connect(url, name=name) as client, client.subscribe(*filters) as events:
        await events.in_effect()
        typer.echo(f"{client.name} listens", err=True)
        seen = 0
        try:
            async for event in events:
                typer.echo(show(event))
                seen += 1
                if seen == count:
                    break
        finally:  # Also on Ctrl-C.
            if events.dropped:
                typer.echo(f"{events.dropped} publications were dropped: too slow", err=True)


def _as_text(event: Event) -> str:
    return f"{event.publisher}#{event.sequence}  {format_record(event.content)}"


def _as_json(event: Event) -> str:
    fields = {
        "publisher": event.publisher,
        "sequence": event.sequence,
        "hops": event.hops,
        "accepted_s": event.accepted_s,
        "content": event.content,
    }
    return msgspec.json.encode(fields).decode()


def pub(
    url: Url,
    records: Annotated[
        list[str] | None,
        typer.Argument(help="As JSON objects or [attribute,value],...; lines of stdin without."),
    ] = None,
    name: Name = None,
    json: Json = False,
) -> None:
    """Publish records, each under an advertisement that is made for it."""
    _run(_pub(url, records, name, None, json))


def adv(
    url: Url,
    filter: Annotated[str, typer.Argument(help="Names every attribute of the publications.")],
    name: Name = None,
    json: Json = False,
) -> None:
    """Advertise, then publish each line of standard input, until it ends."""
    _run(_pub(url, None, name, Filter.parse(filter), json))


async def _pub(
    url: str, records: list[str] | None, name: str | None, announced: Filter | None, json: bool
) -> None:
    async with connect(url, name=name) as client:
        if announced is not None:
            await client.advertise(announced)
            typer.echo(f"{client.name} advertises {announced}", err=True)
        published = 0
        async for line, record in _records(records):
            try:
                if announced is None:
                    await _advertise_for(client, record)
                await client.publish(record)
            except ContentError as error:
                raise UsageError(f"line {line}: {error}") from None
            published += 1
        await client.flush()
        if json:
            typer.echo(msgspec.json.encode({"client": client.name, "published": published}))
        else:
            typer.echo(f"{client.name} published {published}", err=True)


async def _advertise_for(client: Client, record: Record) -> None:
    """Make sure that something permits the record: its class, and whatever else it has."""
    held = client.session.advertisements.values()
    if any(advertised.filter.permits(record) for advertised in held):
        return
    conditions = [
        f"class = {_quoted(value)}" if name == "class" and isinstance(value, str)
        else f"{name} is present"
        for name, value in record.items()
    ]  # fmt: skip
    await client.advertise(" and ".join(conditions))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


async def _records(given: list[str] | None) -> AsyncIterator[tuple[int, dict[str, Value]]]:
    """The records that were given, or those on standard input, with the numbers of their lines."""
    if given is not None:
        for number, text in enumerate(given, start=1):
            yield number, _record(text, number)
        return
    number = 0
    lines = _standard_input()
    while line := await lines.get():
        number += 1
        if line.strip():
            yield number, _record(line, number)


def _standard_input() -> asyncio.Queue[str]:
    """Its lines, and an empty one at the end.

    Read by a thread that nobody waits for: Ctrl-C ends the command, whatever may still come.
    """
    lines: asyncio.Queue[str] = asyncio.Queue(maxsize=LINES_AHEAD_MAX)
    loop = asyncio.get_running_loop()

    def read() -> None:
        line = "-"
        with contextlib.suppress(RuntimeError, CancelledError):  # The loop is over.
            while line:
                line = sys.stdin.readline()
                asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()

    threading.Thread(target=read, daemon=True).start()
    return lines


def _record(text: str, line: int) -> dict[str, Value]:
    try:
        if text.lstrip().startswith("{"):
            return check_record(msgspec.json.decode(text, type=dict[str, Any]))
        return check_record(parse_record(text.strip()))
    except (ContentError, msgspec.DecodeError) as error:
        raise UsageError(f"line {line}: {error}") from None


def explain(
    filter: Annotated[str, typer.Argument(help="A filter.")],
    record: Annotated[str, typer.Argument(help="A record, as JSON or [attribute,value],...")],
    json: Json = False,
) -> None:
    """Say why a record matches a filter, or which predicate it fails; exit 1 if it fails."""
    explanation = Filter.parse(filter).explain(_record(record, 1))
    if json:
        failures = [str(failure) for failure in explanation.failures]
        typer.echo(msgspec.json.encode({"matches": explanation.matched, "failures": failures}))
    else:
        typer.echo(str(explanation))
    if not explanation.matched:
        raise typer.Exit(code=1)


def _run(command: Coroutine[Any, Any, None]) -> None:
    try:
        uvloop.run(command)
    except KeyboardInterrupt:
        pass  # That is how one leaves.
    except BrokenPipeError:  # `godwit sub ... | head` has seen enough.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())  # Python flushes once more when it ends.
