"""Requests of live tests to brokers over HTTP."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterable

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from godwit.broker.routing import Tables
from godwit.broker.stimuli import Hop, LocalClient, Neighbour
from godwit.client import Client
from godwit.overlay.topology import Topology
from godwit.runtime.processes import Processes
from godwit.testing.table_checks import table_errors

POLL_S = 0.05


class _ShownTables(msgspec.Struct):
    """GET /routing."""

    advertisements: dict[str, str]
    subscriptions: dict[str, str]
    told: dict[str, list[str]]


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310  Ours.
        body: bytes = answer.read()
        return body


async def tables(running: Processes) -> dict[str, Tables]:
    """The tables of all brokers."""
    names = [broker.id for broker in running.network.broker]
    texts = await asyncio.gather(
        *(asyncio.to_thread(_get, f"{running.http(name)}/routing") for name in names)
    )
    shown = (msgspec.json.decode(text, type=_ShownTables) for text in texts)
    return {
        name: Tables(_hops(each.advertisements), _hops(each.subscriptions), each.told)
        for name, each in zip(names, shown, strict=True)
    }


def _hops(shown: dict[str, str]) -> dict[str, Hop]:
    kinds: dict[str, Callable[[str], Hop]] = {"client": LocalClient, "neighbour": Neighbour}
    pairs = {id: text.split(" ", 1) for id, text in shown.items()}
    return {id: kinds[kind](name) for id, (kind, name) in pairs.items()}


async def metric(running: Processes, broker: str, name: str, **labels: str) -> float:
    """The sum of the samples of this name that have these labels."""
    text = (await asyncio.to_thread(_get, f"{running.http(broker)}/metrics")).decode()
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


async def is_healthy(running: Processes, broker: str) -> bool:
    try:
        await asyncio.to_thread(_get, f"{running.http(broker)}/healthz")
    except urllib.error.HTTPError as error:
        error.close()
        return False
    return True


async def until(holds: Callable[[], Awaitable[bool]], *, within_s: float = 20.0) -> None:
    """Poll until `holds()` is true; TimeoutError if that takes too long."""
    async with asyncio.timeout(within_s):
        while not await holds():  # noqa: ASYNC110  It happens in another process.
            await asyncio.sleep(POLL_S)


async def tables_become_right(
    topology: Topology, running: Processes, homes: Iterable[tuple[Client, str]]
) -> None:
    """Wait until these clients are at these brokers, and all tables are right."""
    found: list[str] = []
    at = list(homes)

    async def are_right() -> bool:
        found[:] = [
            f"{c.name} is not at {broker}" for c, broker in at if c.session.broker != broker
        ]
        found.extend(table_errors(topology, await tables(running), [c.session for c, _ in at]))
        return not found

    try:
        await until(are_right)
    except TimeoutError:
        raise AssertionError("\n".join(found)) from None
