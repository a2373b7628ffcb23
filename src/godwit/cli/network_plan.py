"""`godwit network plan`: what the shape of a file would change in the running network."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer
import uvloop

from godwit.api import network_api
from godwit.api.network_api import ChangeKind, ChangeRequest, NetworkChange, NetworkView
from godwit.cli.applying import Links, links_of, overlay_of
from godwit.cli.change_options import LISTEN, At
from godwit.cli.network_commands import asked_by, network
from godwit.cli.options import Json, Secret
from godwit.errors import GodwitError, UsageError
from godwit.http.operations import Nothing


class NetworkPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What `godwit network apply` would do."""

    stopped: list[str]
    """Brokers of the file that do not run."""

    others: list[str]
    """Brokers that run, and are not in the file."""

    links_come: Links
    links_go: Links
    links_stay: Links
    overlay: str = ""
    """Of the file; empty if the network keeps the one that it has."""

    change: NetworkChange | None = None
    """The dry run; None if it is refused."""

    refusal: str = ""


@network.command()
def plan(
    file: Annotated[
        Path,
        typer.Argument(
            help="A network file (TOML), or a plan (JSON) of `godwit croc plan --output`."
        ),
    ],
    at: At = LISTEN,
    json: Json = False,
    secret: Secret = "",
) -> None:
    """Say what `godwit network apply` would change, and do nothing.

    The exit code is 1 if it would be refused.
    """
    found = uvloop.run(_planned(file, at, secret))
    if json:
        typer.echo(msgspec.json.encode(found))
    else:
        for line in plan_lines(found, file):
            typer.echo(line)
    if found.refusal:
        raise typer.Exit(code=1)


async def _planned(file: Path, at: str, secret: str) -> NetworkPlan:
    from godwit.http.http_client import HttpClient  # noqa: PLC0415  Few commands need HTTP.

    async with HttpClient(at, secret=secret) as coordinator:
        view = await coordinator.call(network_api.NETWORK, Nothing())
        running = [broker.broker for broker in view.brokers]
        if not running:
            raise UsageError(f"the coordinator at {at} knows no broker")
        links = links_of(file, running)
        overlay, settings = overlay_of(file)
        found = differences(view, brokers_of(file, links), links)
        found = msgspec.structs.replace(found, overlay=overlay)
        request = ChangeRequest(
            kind=ChangeKind.RESHAPE,
            brokers=running,
            links=links,
            overlay=overlay,
            settings=settings,
            dry_run=True,
            asked_by=asked_by(),
        )
        try:
            change = await coordinator.call(network_api.BEGIN_CHANGE, request)
        except GodwitError as error:
            return msgspec.structs.replace(found, refusal=str(error))
    return msgspec.structs.replace(found, change=change)


def brokers_of(file: Path, links: Links) -> list[str]:
    """The brokers of a file; of a plan, those that its tree links."""
    if file.suffix == ".json":
        return sorted({end for link in links for end in link})
    from godwit.runtime.settings import load_network  # noqa: PLC0415  As with HTTP.

    return sorted(each.id for each in load_network(file).broker)


def differences(view: NetworkView, brokers: Collection[str], links: Links) -> NetworkPlan:
    """The running network against brokers and links of a file."""
    running = {broker.broker for broker in view.brokers}
    there = {_ends(link.one, link.other) for link in view.links}
    wanted = {_ends(*link) for link in links}
    return NetworkPlan(
        stopped=sorted(set(brokers) - running),
        others=sorted(running - set(brokers)) if brokers else [],
        links_come=sorted(wanted - there),
        links_go=sorted(there - wanted),
        links_stay=sorted(wanted & there),
    )


def _ends(one: str, other: str) -> tuple[str, str]:
    return (min(one, other), max(one, other))


def plan_lines(found: NetworkPlan, file: Path) -> Iterator[str]:
    for name in found.stopped:
        yield f"broker {name} is in the file and does not run: start it, and let it join"
    for name in found.others:
        yield f"broker {name} runs and is not in the file: let it leave first, or add it"
    for text, links in (("comes", found.links_come), ("goes", found.links_go)):
        for one, other in links:
            yield f"link {one} - {other} {text}"
    yield f"{len(found.links_stay)} links stay"
    if found.refusal:
        yield f"apply would be refused: {found.refusal}"
    elif not (found.links_come or found.links_go):
        same = f", unless its overlay is not `{found.overlay}`" if found.overlay else ""
        yield f"the network has these links: nothing would change{same}"
    else:
        yield f"no client moves, and no broker is restarted; do it: godwit network apply {file}"
