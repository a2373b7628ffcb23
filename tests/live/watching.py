"""What live tests ask brokers over HTTP, and what their tables should say."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Mapping

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from godwit.client import Client
from godwit.network.processes import Processes
from godwit.overlay.topology import Topology

POLL_S = 0.05


class Tables(msgspec.Struct):
    """GET /routing."""

    broker: str
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
    decoded = (msgspec.json.decode(text, type=Tables) for text in texts)
    return dict(zip(names, decoded, strict=True))


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
    """Wait for what cannot be awaited; TimeoutError if it does not come."""
    async with asyncio.timeout(within_s):
        while not await holds():  # noqa: ASYNC110  It happens in another process.
            await asyncio.sleep(POLL_S)


def held_by(*clients: tuple[Client, str]) -> dict[str, dict[str, tuple[str, str]]]:
    """What clients at these brokers have in the tables: two arguments of `wrong_entries`."""
    advertised: dict[str, tuple[str, str]] = {}
    subscribed: dict[str, tuple[str, str]] = {}
    for client, broker in clients:
        home = (client.name, broker)
        advertised |= dict.fromkeys(client.session.advertisements, home)
        subscribed |= {held.id: home for held in client.session.subscriptions.values()}
    return {"advertised": advertised, "subscribed": subscribed}


def wrong_entries(
    topology: Topology,
    found: Mapping[str, Tables],
    *,
    advertised: Mapping[str, tuple[str, str]],
    subscribed: Mapping[str, tuple[str, str]],
) -> list[str]:
    """What is wrong in the tables of a quiet network; ids are mapped to (client, its broker).

    Every advertisement is known everywhere, with the next hop on the way to its publisher.  A
    broker holds the subscriptions of its own clients and those its neighbours say they told it.
    """
    wrong = []
    for broker in topology.brokers:
        table = found[broker]
        want = {id: _next_hop(topology, broker, *home) for id, home in advertised.items()}
        if table.advertisements != want:
            wrong.append(f"{broker} advertisements: {table.advertisements}, should be {want}")
        if set(table.told) != set(topology.neighbours(broker)):
            wrong.append(f"{broker} is linked with {sorted(table.told)}")
        own = {id: f"client {client}" for id, (client, at) in subscribed.items() if at == broker}
        told = {
            id: f"neighbour {neighbour}"
            for neighbour in topology.neighbours(broker)
            for id in found[neighbour].told.get(broker, ())
        }
        if table.subscriptions != own | told:
            wrong.append(f"{broker} subscriptions: {table.subscriptions}, should be {own | told}")
        if not set(told) <= set(subscribed):
            wrong.append(f"{broker} was told of {sorted(set(told) - set(subscribed))}")
    return wrong


def _next_hop(topology: Topology, broker: str, client: str, at: str) -> str:
    if broker == at:
        return f"client {client}"
    distance = topology.distances(at)
    nearer = min(topology.neighbours(broker), key=lambda other: distance[other])
    return f"neighbour {nearer}"
