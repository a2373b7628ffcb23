"""A small live network with traffic, and its dashboard, in one event loop and in processes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping

from godwit.client import connect
from godwit.overlay.topology import Topology, chain
from godwit.runtime.server import BrokerServer
from godwit.runtime.settings import network_of
from godwit.web.dashboard import Dashboard
from godwit.web.directory import Directory

PERIOD_S = 0.2
ADVERTISED = "class = 'QUOTE' and symbol is a string and price is a number"
QUOTE = '{"class": "QUOTE", "symbol": "YHOO", "price": 12}'


@contextlib.asynccontextmanager
async def brokers_here(topology: Topology | None = None) -> AsyncIterator[dict[str, BrokerServer]]:
    """Brokers of this process, by name."""
    network = network_of(topology or chain(2), port=0, http_port=0)
    async with contextlib.AsyncExitStack() as stack:
        running: dict[str, BrokerServer] = {}
        for settings in network.broker:
            links = [running[link].url for link in settings.links]
            linked = type(settings)(
                id=settings.id, listen=settings.listen, http=settings.http, links=links
            )
            alone = type(network)(broker=[linked])
            running[settings.id] = await stack.enter_async_context(BrokerServer(alone, linked))
        for server in running.values():
            await server.linked()
        yield running


def directory_of(running: Mapping[str, BrokerServer]) -> Directory:
    return Directory(brokers=lambda: {name: each.http_url or "" for name, each in running.items()})


@contextlib.asynccontextmanager
async def dashboard_of(directory: Directory) -> AsyncIterator[tuple[Dashboard, str]]:
    dashboard = Dashboard(directory, period_s=PERIOD_S)
    async with dashboard.serve("127.0.0.1:0") as url:
        yield dashboard, url


@contextlib.asynccontextmanager
async def traffic(publish_at: str, subscribe_at: str) -> AsyncIterator[None]:
    """paul publishes quotes; sue wants those of YHOO, tom those above 100."""
    async with (
        connect(publish_at, name="paul") as paul,
        connect(subscribe_at, name="sue") as sue,
        connect(subscribe_at, name="tom") as tom,
        sue.subscribe("class = 'QUOTE' and symbol = 'YHOO'") as quotes,
        tom.subscribe("class = 'QUOTE' and price > 100") as dear,
    ):
        await paul.advertise(ADVERTISED)
        await quotes.in_effect()
        await dear.in_effect()

        async def publish() -> None:
            for price in range(1_000_000):
                await paul.publish({"class": "QUOTE", "symbol": "YHOO", "price": price % 90})
                await asyncio.sleep(0.02)

        async def read() -> None:
            async for _ in quotes:
                pass

        tasks = [asyncio.create_task(publish()), asyncio.create_task(read())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
