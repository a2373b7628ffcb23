"""A client in a storm: publishes, subscribes and moves, and records what it sent and received."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random

from godwit.client import Events
from godwit.content.filters import Filter
from godwit.content.values import Value
from godwit.errors import StayedError, UsageError
from godwit.testing.memory_network import MemoryNetwork

MOVE_S = (0.05, 5.0)
SIZES = 100


class StormClient:
    def __init__(self, name: str, network: MemoryNetwork, broker: str, random: Random) -> None:
        self.name = name
        self.client = network.connect(broker, name=name)
        self.published: list[int] = []
        """The `size` of each publication, by number."""
        self.received: dict[str, list[int]] = {}
        """Numbers of publications, by publisher."""
        self.moved = self.stayed = 0
        self.is_dead = False
        self.unacknowledged_at_death = 0
        self.filters: list[Filter] = []
        self.publishes = random.random() < 0.7
        self.subscribes = True
        self._network = network
        self._random = random
        self.period_s = 10 ** random.uniform(-3.0, -1.5)
        self._reading: asyncio.Task[None] | None = None

    async def start(self, names: list[str]) -> None:
        """Advertise and subscribe, and wait until that is in effect."""
        await self.client.__aenter__()
        if self.publishes:
            await self.client.advertise(f"class = '{self.name}' and size is a number and n >= 0")
        for _ in range(self._random.randint(0 if self.publishes else 1, 2) * self.subscribes):
            text = f"size > {self._random.choice((-1, 30, 60))}"
            if self._random.random() < 0.5:
                text += f" and class = '{self._random.choice(names)}'"
            self.filters.append(Filter.parse(text))
        if self.filters:
            events = await self.client.subscribe(*self.filters).__aenter__()
            self._reading = asyncio.create_task(self._read(events))
            await events.in_effect()

    async def _read(self, events: Events) -> None:
        async for event in events:
            number = event.content["n"]
            assert isinstance(number, int)
            self.received.setdefault(event.publisher, []).append(number)

    async def publish_until(self, until_s: float) -> None:
        loop = asyncio.get_running_loop()
        while self.publishes and loop.time() < until_s and not self.is_dead:
            # Recorded first: an interrupted publication may have left.
            self.published.append(self._random.randrange(SIZES))
            await self._publish()
            await asyncio.sleep(self._random.expovariate(1.0 / self.period_s))

    async def _publish(self) -> None:
        try:
            await self.client.publish(self._content(len(self.published) - 1))
        except UsageError:
            assert self.is_dead

    async def move(self, to: str, *, within_s: float | None = None) -> None:
        try:
            url = self._network.url(to)
            await self.client.move(url, within_s=within_s or self._random.choice(MOVE_S))
            self.moved += 1
        except StayedError:
            self.stayed += 1
        except UsageError:
            assert self.is_dead

    def published_for(self, other: StormClient) -> list[int]:
        """Numbers of our publications that match the subscriptions of `other`."""
        if other is self:
            return []
        return [
            number
            for number in range(len(self.published))
            if any(filter.matches_checked(self._content(number)) for filter in other.filters)
        ]

    def _content(self, number: int) -> dict[str, Value]:
        return {"class": self.name, "size": self.published[number], "n": number}

    def kill(self) -> None:
        """Die without a goodbye."""
        self.is_dead = True
        self.unacknowledged_at_death = self.client.session.unacknowledged
        self.client.abort()

    async def stop(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        if not self.is_dead:
            await self.client.close()


async def some_clients(
    network: MemoryNetwork, brokers: Sequence[str], random: Random
) -> list[StormClient]:
    """Two to five clients at brokers and with a pace of their own, all of them started."""
    names = [f"c{number}" for number in range(random.randint(2, 5))]
    clients = [StormClient(name, network, random.choice(brokers), random) for name in names]
    for client in clients:
        client.period_s = 10 ** random.uniform(-2.5, -1.3)
        await client.start(names)
    return clients
