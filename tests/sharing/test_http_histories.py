"""Random users over HTTP, in memory: answers are lost, sessions replaced, brokers crash."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from tests.asynchronous import run
from tests.sharing.clusters import CHANNEL, MemoryCluster

from godwit.api import broker_api as api
from godwit.content.channel_messages import ChannelSubscriptionId, Position
from godwit.http.errors import RestError
from godwit.overlay.topology import chain
from godwit.runtime.settings import Limits
from godwit.sharing.gateway import Gateway
from godwit.testing.memory_network import MemoryNetwork

ROWS_WANTED = 80


class User:
    """Keeps what it has dealt with, and the position behind it; everything else may be lost."""

    def __init__(self, name: str, n: int, gateways: list[Gateway], random: Random) -> None:
        self.name = name
        self.n = n
        self.random = random
        self.gateways = gateways
        self.took = list[Position]()
        self.position: Position | None = None
        self.gateway = gateways[0]
        self.session = ""
        self.id = ChannelSubscriptionId("")

    async def come(self) -> None:
        """Log in somewhere, and go on."""
        while True:
            try:
                await self._come()
            except RestError as error:
                assert error.status in (404, 503), error  # noqa: PT017
                await asyncio.sleep(0.005)
            else:
                return

    async def _come(self) -> None:
        self.gateway = self.random.choice(self.gateways)
        self.session = (await self.gateway._login(api.Login(self.name))).session
        request = api.SubscribeChannel(
            session=self.session, channel=CHANNEL, arguments={"n": self.n}, start=self.position
        )
        granted = await self.gateway._subscribe(request)
        self.id = granted.subscription
        if self.position is None:
            self.position = granted.start

    async def live(self) -> None:
        await self.come()
        while len(self.took) < ROWS_WANTED:
            chance = self.random.random()
            if chance < 0.1:
                await self.come()
            elif chance < 0.2:
                asking = asyncio.create_task(self.ask())
                await asyncio.sleep(self.random.random() * 0.01)
                await asyncio.gather(self.read(), asking, return_exceptions=True)
            else:
                await self.read()

    async def ask(self) -> api.ResultsPage:
        assert self.position is not None
        positions = {self.id: self.position}
        request = api.ResultsAfter(session=self.session, positions=positions, wait_s=1)
        return await self.gateway._results(request)

    async def read(self) -> None:
        try:
            answer = await self.ask()
        except RestError as error:
            assert error.status in (404, 409, 503), error  # noqa: PT017
            if error.status != 409:
                await self.come()
            return
        if self.random.random() < 0.3:
            return  # The answer was lost on the way.
        rows = [(part.execution, part.first + k) for part in answer.results
                for k in range(len(part.rows))]  # fmt: skip
        if rows and self.random.random() < 0.3:
            rows = rows[: self.random.randrange(len(rows)) + 1]
            self.position = (rows[-1][0], rows[-1][1] + 1)
        else:
            self.position = answer.positions[self.id]
        self.took += rows


async def crash(network: MemoryNetwork, gateways: list[Gateway], random: Random) -> None:
    """A broker is gone, with all sessions, and comes back."""
    number = random.randrange(len(gateways))
    broker = sorted(network.nodes)[number]
    network.crash(broker)
    gateways[number].close()
    await asyncio.sleep(0.01)
    await network.restart(broker)
    gateways[number] = Gateway(network.nodes[broker])


@pytest.mark.parametrize("seed", range(8))
def test_every_row_is_had_once(seed: int) -> None:
    async def scenario() -> None:
        random, cluster = Random(seed), MemoryCluster()
        cluster.rows_per_pull = random.choice([1, 4, 1_000])
        limits = Limits(session_s=5)
        async with MemoryNetwork(chain(2), cluster=cluster, limits=limits) as network:
            gateways = [Gateway(node) for node in network.nodes.values()]
            users = [User(f"u{k}", k % 2, gateways, random) for k in range(4)]
            living = [asyncio.create_task(user.live()) for user in users]
            while not all(task.done() for task in living):
                sizes = {id: random.choice([0, 1, 5]) for id in cluster.ids.values()}
                cluster.execute({id: [{"k": k} for k in range(n)] for id, n in sizes.items()})
                if random.random() < 0.02:
                    await crash(network, gateways, random)
                await asyncio.sleep(0.003)
            await asyncio.gather(*living)
            for user in users:
                id = cluster.ids[f"{float(user.n)}"]
                there = [(e, k) for e, rows in sorted(cluster.rows[id].items())
                         for k in range(len(rows))]  # fmt: skip
                began = there.index(user.took[0])
                assert user.took == there[began : began + len(user.took)], user.name
            for gateway in gateways:
                gateway.close()

    run(scenario(), within_s=60)
