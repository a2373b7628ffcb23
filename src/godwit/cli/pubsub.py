"""Commands of a client: publish, subscribe, advertise; and one that explains a filter."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from asyncio import CancelledError
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Annotated, Any, TypeAlias

import msgspec
import typer
import uvloop

from godwit.cli.options import Json
from godwit.client import Client, Event, connect
from godwit.client.readiness import waits_for
from godwit.content.filters import Filter
from godwit.content.text import format_record, read_record
from godwit.content.values import Record, Value
from godwit.errors import ContentError, UsageError

#: Lines of standard input that are read ahead of publishing.
LINES_AHEAD_MAX = 1_000
#: What takes longer to come into effect is explained.
LONG_S = 2.0
RECORD_HELP = "Record, as a JSON object or \\[attribute,value],..."

Url: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="Address of a broker, godwit://HOST:PORT, or of a coordinator, bcs+http://HOST:PORT;"
        " several, separated by commas, are tried in order."
    ),
]
Name: TypeAlias = Annotated[
    str | None, typer.Option(help="Name of the client.", show_default="a random name")
]


TakeOver: TypeAlias = Annotated[
    bool, typer.Option("--take-over", help="End the session of another client of this name.")
]


def sub(
    url: Url,
    filters: Annotated[
        list[str],
        typer.Argument(help="Filters; a publication that matches any of them is printed."),
    ],
    name: Name = None,
    take_over: TakeOver = False,
    count: Annotated[
        int | None, typer.Option(min=1, help="Stop after this number of publications.")
    ] = None,
    json: Json = False,
) -> None:
    """Subscribe, and print matching publications until Ctrl-C."""
    wanted = [Filter.parse(filter) for filter in filters]
    connecting = _connect(url, name, take_over=take_over)
    _run(_sub(connecting, wanted, count, _as_json if json else _as_text))


async def _sub(
    connecting: Client, filters: list[Filter], count: int | None, show: Callable[[Event], str]
) -> None:
    async with connecting as client, client.subscribe(*filters) as events:
        async with _says_what_it_waits_for(client):
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
                typer.echo(
                    f"{events.dropped} publications were dropped: reading is too slow", err=True
                )


def _connect(url: str, name: str | None, *, take_over: bool) -> Client:
    """A client whose gaps are printed, a line each."""
    client = connect(url, name=name, take_over=take_over)
    client.gaps.on_gap = lambda gap: typer.echo(str(gap), err=True)
    return client


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
        typer.Argument(help=f"{RECORD_HELP}; without any, lines of standard input."),
    ] = None,
    name: Name = None,
    take_over: TakeOver = False,
    json: Json = False,
) -> None:
    """Publish records, and advertise them first where necessary."""
    _run(_pub(_connect(url, name, take_over=take_over), records, None, json))


def adv(
    url: Url,
    filter: Annotated[
        str,
        typer.Argument(help="Filter that permits the publications; it must name each attribute."),
    ],
    name: Name = None,
    take_over: TakeOver = False,
    json: Json = False,
) -> None:
    """Advertise, then publish each line of standard input."""
    connecting = _connect(url, name, take_over=take_over)
    _run(_pub(connecting, None, Filter.parse(filter), json))


async def _pub(
    connecting: Client, records: list[str] | None, announced: Filter | None, json: bool
) -> None:
    async with connecting as client:
        if announced is not None:
            async with _says_what_it_waits_for(client):
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
    """Advertise the class and the attributes of a record, unless it is permitted already."""
    held = client.session.advertisements.values()
    if any(advertised.filter.permits_checked(record) for advertised in held):
        return
    conditions = [
        f"class = {_quoted(value)}" if name == "class" and isinstance(value, str)
        else f"{name} is present"
        for name, value in record.items()
    ]  # fmt: skip
    async with _says_what_it_waits_for(client):
        await client.advertise(" and ".join(conditions))


@contextlib.asynccontextmanager
async def _says_what_it_waits_for(client: Client) -> AsyncIterator[None]:
    """Print which part of the network is missing, if something takes long to come into effect."""

    async def explain_wait() -> None:
        await asyncio.sleep(LONG_S)
        missing = (await client.status()).missing
        lacking = waits_for(missing) or "brokers exchange their tables"
        typer.echo(f"waiting for the network to be complete: {lacking}", err=True)

    explaining = asyncio.create_task(explain_wait())
    try:
        yield
    finally:
        explaining.cancel()
        await asyncio.gather(explaining, return_exceptions=True)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


async def _records(given: list[str] | None) -> AsyncIterator[tuple[int, dict[str, Value]]]:
    """The records of the command line, or else of standard input, with line numbers."""
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
    """The lines of standard input, and an empty one at the end.

    A daemon thread reads them, so that Ctrl-C ends the command while it waits for a line.
    """
    lines: asyncio.Queue[str] = asyncio.Queue(maxsize=LINES_AHEAD_MAX)
    loop = asyncio.get_running_loop()

    def read() -> None:
        line = "-"
        with contextlib.suppress(RuntimeError, CancelledError):  # The event loop has ended.
            while line:
                line = sys.stdin.readline()
                asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()

    threading.Thread(target=read, daemon=True).start()
    return lines


def _record(text: str, line: int) -> dict[str, Value]:
    try:
        return read_record(text)
    except ContentError as error:
        raise UsageError(f"line {line}: {error}") from None


def explain(
    filter: Annotated[str, typer.Argument(help="Filter.")],
    record: Annotated[str, typer.Argument(help=RECORD_HELP)],
    json: Json = False,
) -> None:
    """Show why a record matches a filter or does not.  The exit code is 1 if it does not."""
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
        pass  # The usual end of `godwit sub`.
    except BrokenPipeError:  # The reader has ended, as in `godwit sub ... | head`.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())  # Python flushes once more at exit.
