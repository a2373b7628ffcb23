"""Where `godwit whatif` gets a network from: a file, or a running network."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import typer
import uvloop

from godwit.api.network_api import NETWORK, NetworkView
from godwit.cli.load_balancing import http_url
from godwit.errors import GodwitError, UsageError
from godwit.http.http_client import HttpClient
from godwit.http.operations import Nothing
from godwit.rehearsal.network_snapshot import NetworkSnapshot, decode_snapshot
from godwit.rehearsal.taking_snapshots import SnapshotSource, SnapshotTimes, take_snapshot
from godwit.runtime.settings import NetworkSettings, load_network

SILENT = "silent"
#: How often, and how many times, a coordinator is asked that does not know all brokers yet.
LOOK_S, LOOKS = 0.5, 20


def read_snapshot(path: Path) -> NetworkSnapshot:
    try:
        document = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    try:
        return decode_snapshot(document)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def save_snapshot(snapshot: NetworkSnapshot, path: Path) -> None:
    try:
        path.write_bytes(msgspec.json.encode(snapshot) + b"\n")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None


def live_snapshot(where: Sequence[str], times: SnapshotTimes, secret: str) -> NetworkSnapshot:
    """Of a network file, a coordinator, or brokers."""
    return uvloop.run(_taken(where, times, secret))


async def _taken(where: Sequence[str], times: SnapshotTimes, secret: str) -> NetworkSnapshot:
    source = await source_of(where, secret)
    return await take_snapshot(source, times, _say)


def _say(text: str) -> None:
    if sys.stderr.isatty():
        typer.echo(text, err=True)


async def source_of(where: Sequence[str], secret: str) -> SnapshotSource:
    files = [text for text in where if "://" not in text]
    urls = [text for text in where if "://" in text]
    if len(files) > 1 or (files and urls) or not where:
        raise UsageError("name one network file, or HTTP addresses of a coordinator or of brokers")
    if not files:
        return SnapshotSource(http=await _brokers(urls, secret), secret=secret)
    network = load_network(Path(files[0]))
    secret = secret or network.secret
    coordinator = network.service_url("coordinator")
    if coordinator is not None:
        http = await _brokers([coordinator], secret)
    else:
        http = _addresses(network, files[0])
    return SnapshotSource(
        http=http,
        secret=secret,
        overlay=network.overlay,
        overlay_settings=network.overlay_settings,
        # A tree may have another shape than that of its file; brokers say which.
        links=None if network.overlay == "tree" else sorted(network.topology.links),
        placement=network.placement,
        balancing=network.balancing,
        has_profiles=network.profiling is not None and network.profiling.enabled,
    )


def _addresses(network: NetworkSettings, file: str) -> dict[str, str]:
    without = [each.id for each in network.broker if each.http is None]
    if without:
        raise UsageError(f"{file}: {', '.join(without)} have no `http`: they cannot be asked")
    return {each.id: http_url(each) for each in network.broker}


async def _brokers(urls: Sequence[str], secret: str) -> dict[str, str]:
    """The HTTP address of each broker that a coordinator, or brokers, know of."""
    found: dict[str, str] = {}
    for url in urls:
        view = await _complete_view(url, secret)
        for each in view.brokers:
            if each.account is None or each.state == SILENT:
                raise UsageError(f"broker {each.broker} does not answer: wait until it is back")
            if each.account.http is None and len(view.brokers) > 1:
                raise UsageError(f"broker {each.broker} has no `http` in its network file")
            found[each.broker] = each.account.http or url
    return found


async def _complete_view(url: str, secret: str) -> NetworkView:
    """A broker that has just come is known before it has said anything: wait a moment."""
    for _ in range(LOOKS):
        view = await _view(url, secret)
        if all(each.account is not None for each in view.brokers):
            break
        await asyncio.sleep(LOOK_S)
    return view


async def _view(url: str, secret: str) -> NetworkView:
    try:
        async with HttpClient(url, secret=secret, attempts=1) as server:
            return await server.call(NETWORK, Nothing())
    except GodwitError as error:
        raise UsageError(f"{url} does not answer: {error}") from None
