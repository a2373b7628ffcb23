"""Random trees, tiny windows, cut connections: everybody hears everybody, once, in order."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from tests.asynchronous import run
from tests.runtime.scenes import NUMBERS, cut

from godwit.client import Client, Events
from godwit.overlay.topology import random_tree
from godwit.runtime.settings import Limits
from godwit.testing.memory_network import MemoryNetwork

CLIENTS, PUBLICATIONS = 5, 100


async def speak(client: Client, random: Random) -> None:
    for x in range(PUBLICATIONS):
        await client.publish({"x": x}, payload=bytes(random.choice((10, 500, 3_000))))
    await client.flush()


async def hear(events: Events) -> None:
    heard: dict[str, list[object]] = {}
    for _ in range((CLIENTS - 1) * PUBLICATIONS):
        event = await anext(events)
        heard.setdefault(event.publisher, []).append(event.content["x"])
    assert list(heard.values()) == [list(range(PUBLICATIONS))] * (CLIENTS - 1)


async def disturb(network: MemoryNetwork, random: Random) -> None:
    for _ in range(6):
        node = random.choice(list(network.nodes.values()))
        cut(random.choice(list(node.ports.values())).connection)
        await asyncio.sleep(random.choice((0, 0.005, 0.02)))


@pytest.mark.parametrize("seed", range(15))
def test_random_networks_lose_nothing_and_never_lock_up(seed: int) -> None:
    random = Random(seed)
    topology = random_tree(random.randint(2, 6), random)
    limits = Limits(window_bytes=random.choice((1024, 8192, 100_000)), patience_s=60)

    async def scenario() -> None:
        async with MemoryNetwork(topology, limits=limits) as network:
            clients = []
            for number in range(CLIENTS):
                client = network.connect(random.choice(topology.brokers), name=f"c{number}")
                clients.append(await client.__aenter__())
                await client.advertise(NUMBERS)
            feeds = [await client.subscribe(NUMBERS).__aenter__() for client in clients]
            for events in feeds:
                await events.in_effect()
            await asyncio.gather(
                *(speak(client, random) for client in clients),
                *map(hear, feeds),
                disturb(network, random),
            )
            for client in clients:
                await client.close()

    run(scenario())
