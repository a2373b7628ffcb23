"""Clients in a storm: they publish, subscribe and move, and write down what they said and heard."""

from __future__ import annotations

import asyncio
from random import Random

from godwit.client import Events
from godwit.content.filters import Filter
from godwit.errors import StayedError, UsageError
from godwit.testing import MemoryNetwork

MOVE_S = (0.05, 5.0)
SIZES = 100


class Person:
    def __init__(self, name: str, network: MemoryNetwork, home: str, random: Random) -> None:
        self.name = name
        self.client = network.connect(home, name=name)
        self.said: list[int] = []
        """The size of each publication; they are numbered by their place."""
        self.heard: dict[str, list[int]] = {}
        """By publisher, the numbers of its publications."""
        self.moved = self.stayed = 0
        self.is_gone = False
        self.unacknowledged_at_end = 0
        self.wants: list[Filter] = []
        self.publishes = random.random() < 0.7
        self._network = network
        self._random = random
        self._period_s = 10 ** random.uniform(-3.0, -1.5)
        self._listening: asyncio.Task[None] | None = None

    async def settle_in(self, names: list[str]) -> None:
        """Advertise and subscribe, and wait until that is in effect."""
        await self.client.__aenter__()
        if self.publishes:
            await self.client.advertise(f"class = '{self.name}' and size is a number and n >= 0")
        for _ in range(self._random.randint(0 if self.publishes else 1, 2)):
            text = f"size > {self._random.choice((-1, 30, 60))}"
            if self._random.random() < 0.5:
                text += f" and class = '{self._random.choice(names)}'"
            self.wants.append(Filter.parse(text))
        if self.wants:
            events = await self.client.subscribe(*self.wants).__aenter__()
            self._listening = asyncio.create_task(self._listen(events))
            await events.in_effect()

    async def _listen(self, events: Events) -> None:
        async for event in events:
            number = event.content["n"]
            assert isinstance(number, int)
            self.heard.setdefault(event.publisher, []).append(number)

    async def talk(self, until_s: float) -> None:
        loop = asyncio.get_running_loop()
        while self.publishes and loop.time() < until_s and not self.is_gone:
            size = self._random.randrange(SIZES)
            self.said.append(size)  # First: a publication that is interrupted is on its way.
            await self._say(size)
            await asyncio.sleep(self._random.expovariate(1.0 / self._period_s))

    async def _say(self, size: int) -> None:
        try:
            await self.client.publish({"class": self.name, "size": size, "n": len(self.said) - 1})
        except UsageError:
            assert self.is_gone

    async def move(self, to: str, *, within_s: float | None = None) -> None:
        try:
            url = self._network.url(to)
            await self.client.move(url, within_s=within_s or self._random.choice(MOVE_S))
            self.moved += 1
        except StayedError:
            self.stayed += 1
        except UsageError:
            assert self.is_gone

    def words_for(self, other: Person) -> list[int]:
        """What `other` wants to hear of what we said."""
        if other is self:
            return []
        return [
            number
            for number, size in enumerate(self.said)
            if any(
                want.matches({"class": self.name, "size": size, "n": number})
                for want in other.wants
            )
        ]

    def perish(self) -> None:
        """Be gone, without a word."""
        self.is_gone = True
        self.unacknowledged_at_end = self.client.session.unacknowledged
        self.client.abort()

    async def leave(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
        if not self.is_gone:
            await self.client.close()
