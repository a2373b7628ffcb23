"""Brokers crash and come back while clients move: nothing comes twice or out of order, and once it
is quiet everybody is somewhere, every broker knows where, and everybody hears everybody."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from random import Random

import pytest
from tests.asynchronous import run, until

from godwit.client import Client, Event, Events
from godwit.errors import StayedError
from godwit.overlay.epochs.epoch_routing import EpochRouting
from godwit.overlay.topology import random_tree
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.runtime.settings import Limits
from godwit.testing.memory_network import MemoryNetwork
from godwit.testing.table_checks import table_errors

LIMITS = Limits(link_s=0.15, session_s=0.6, heartbeat_s=0.1)
STORM_S = 1.5


class Wanderer:
    """Publishes, hears everybody, and moves about."""

    def __init__(self, client: Client, network: MemoryNetwork, random: Random) -> None:
        self.client = client
        self.said = 0
        self.heard: dict[str, list[int]] = {}
        self.moved = self.stayed = 0
        self._network = network
        self._random = random

    async def listen(self, events: Events) -> None:
        async for event in events:
            self._hear(event)

    def _hear(self, event: Event) -> None:
        number = event.content["x"]
        assert isinstance(number, int)
        self.heard.setdefault(event.publisher, []).append(number)

    async def say(self) -> None:
        self.said += 1
        await self.client.publish({"x": self.said})

    async def talk(self) -> None:
        while True:
            await self.say()
            await asyncio.sleep(0.003)

    async def walk(self) -> None:
        while True:
            await asyncio.sleep(self._random.expovariate(20.0))
            to = self._network.url(self._random.choice(list(self._network._dialling)))
            try:
                await self.client.move(to, within_s=self._random.choice((0.05, 0.3)))
                self.moved += 1
            except StayedError:
                self.stayed += 1

    @property
    def is_settled(self) -> bool:
        """Is it at home somewhere, and all that it holds in effect?"""
        session = self.client.session
        if (
            self.client.broker_connection.connection is None
            or not session.is_idle
            or session.is_moving
        ):
            return False
        epochs = self._network.nodes[session.broker].broker.routing
        assert isinstance(epochs, EpochRouting)
        routing = epochs._now
        assert isinstance(routing, TreeRouting)
        (wanted,) = (routing._interests.get(held.id) for held in session.subscriptions.values())
        return wanted is not None and wanted.in_effect


async def crashes(network: MemoryNetwork, random: Random) -> None:
    while True:
        await asyncio.sleep(random.expovariate(6.0))
        broker = random.choice(list(network.nodes))
        network.crash(broker)
        await asyncio.sleep(random.choice((0.0, 0.05, 0.4)))
        await network.restart(broker)


async def storm(seed: int) -> tuple[int, int]:
    """How many moves led elsewhere and how many did not; nothing went wrong in any."""
    random = Random(seed)
    topology = random_tree(random.randint(2, 5), random)
    async with MemoryNetwork(topology, limits=LIMITS) as network:
        wanderers, feeds = [], []
        for number in range(3):
            broker = random.choice(topology.brokers)
            client = network.connect(broker, name=f"c{number}", fall_back_s=0.4)
            await client.__aenter__()
            await client.advertise("x is a number")
            feeds.append(await client.subscribe("x is a number").__aenter__())
            await feeds[-1].in_effect()
            wanderers.append(Wanderer(client, network, random))
        listening = [
            asyncio.create_task(each.listen(feed))
            for each, feed in zip(wanderers, feeds, strict=True)
        ]
        acting = [asyncio.create_task(act()) for w in wanderers for act in (w.talk, w.walk)]
        crashing = asyncio.create_task(crashes(network, random))
        await asyncio.sleep(STORM_S)
        for task in (*acting, crashing):
            task.cancel()
        await asyncio.gather(*acting, crashing, return_exceptions=True)
        for broker in set(topology.brokers) - set(network.nodes):
            await network.restart(broker)

        sessions = [each.client.session for each in wanderers]
        await until(
            lambda: (
                all(each.is_settled for each in wanderers)
                and not table_errors(topology, network.tables(), sessions)
            )
        )
        since = {each.client.name: each.said for each in wanderers}
        for each in wanderers:
            for _ in range(10):
                await each.say()
        for each in wanderers:
            others = [other for other in wanderers if other is not each]
            await until(lambda: all(_last(each, o) == o.said for o in others))  # noqa: B023
            for other in others:
                heard = each.heard[other.client.name]
                assert all(a < b for a, b in pairwise(heard)), "twice, or out of order"
                assert heard[-10:] == list(range(since[other.client.name] + 1, other.said + 1))
        for task in listening:
            task.cancel()
        for each in wanderers:
            await each.client.close()
    return sum(each.moved for each in wanderers), sum(each.stayed for each in wanderers)


def _last(wanderer: Wanderer, other: Wanderer) -> int:
    return wanderer.heard.get(other.client.name, [0])[-1]


@pytest.mark.parametrize("seed", range(8))
def test_brokers_crash_while_clients_move(seed: int) -> None:
    moved, stayed = run(storm(seed), within_s=40.0)
    assert moved > 0
    assert moved + stayed > 10
