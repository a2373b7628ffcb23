"""A durable subscription: each publication stored once, though process and broker fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import Any

import pytest

from godwit.broker.stimuli import LocalClient
from godwit.client.client_session import StreamMark
from godwit.client.durable_subscription import DurableSubscription, Keeper
from godwit.content.filters import Filter
from godwit.content.messages import Publication
from godwit.overlay.topology import chain
from godwit.runtime.port import ClientPort
from godwit.runtime.settings import Limits
from godwit.testing.memory_network import MemoryNetwork

WANTED = Filter.parse("n is a number")
NAME = "feed"


class Disk:
    """Durable storage that outlives processes."""

    def __init__(self) -> None:
        self.kept: list[int] = []
        self.mark: StreamMark | None = None
        self.last: dict[str, int] = {}
        self.delay_s = 0.0

    async def keep(self, batch: Sequence[Publication], mark: StreamMark) -> None:
        await asyncio.sleep(self.delay_s)
        for publication in batch:
            if publication.sequence > self.last.get(publication.publisher, -1):
                self.last[publication.publisher] = publication.sequence
                self.kept.append(int(publication.content["n"]))
        self.keep_mark(mark)
        await asyncio.sleep(self.delay_s)

    def keep_mark(self, mark: StreamMark) -> None:
        self.mark = mark if self.mark is None else max(mark, self.mark)


def follower(network: MemoryNetwork, disk: Disk, broker: str = "B1") -> DurableSubscription:
    return DurableSubscription(
        network.url(broker),
        name=NAME,
        filter=WANTED,
        keeper=Keeper(disk.keep, disk.keep_mark),
        mark=disk.mark,
        resolve=network._resolve,
    )


async def die(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


async def until(done: Callable[[], bool]) -> None:
    while not done():  # noqa: ASYNC110
        await asyncio.sleep(0.005)


def run(history: Coroutine[Any, Any, None], within_s: float = 30) -> None:
    async def within_time() -> None:
        async with asyncio.timeout(within_s):
            await history

    asyncio.run(within_time())


def test_another_process_goes_on_behind_what_was_kept() -> None:
    async def history() -> None:
        disk = Disk()
        async with MemoryNetwork() as network, network.connect() as publisher:
            await publisher.advertise("n is a number")
            first = follower(network, disk)
            task = asyncio.create_task(first.run(5))
            await first.in_effect()
            await publisher.publish({"n": 0})
            await until(lambda: disk.kept == [0])
            await die(task)
            for n in (1, 2, 3):
                await publisher.publish({"n": n})
            task = asyncio.create_task(follower(network, disk).run(5))
            await until(lambda: disk.kept == [0, 1, 2, 3])
            await publisher.flush()
            await die(task)

    run(history())


def test_publishers_wait_for_what_is_not_kept() -> None:
    async def history() -> None:
        disk = Disk()
        limits = Limits(patience_s=0.05, client_queue_bytes=1024)
        async with MemoryNetwork(limits=limits) as network, network.connect() as publisher:
            await publisher.advertise("n is a number")
            first = follower(network, disk)
            task = asyncio.create_task(first.run(5))
            await first.in_effect()
            await die(task)
            for n in range(500):
                await publisher.publish({"n": n}, payload=b"x" * 100)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await publisher.flush()
            task = asyncio.create_task(follower(network, disk).run(5))
            await publisher.flush()
            assert disk.kept == list(range(500))
            port = network.nodes["B1"].ports[LocalClient(NAME)]
            assert isinstance(port, ClientPort)
            assert port.traffic.dropped == 0
            await die(task)

    run(history())


def test_only_who_has_the_secret_makes_publishers_wait() -> None:
    async def history() -> None:
        disk = Disk()
        async with MemoryNetwork() as network:
            network.nodes["B1"].secret = "known to few"  # noqa: S105
            with pytest.raises(Exception, match="has another secret than this broker"):
                await follower(network, disk).run(5)

    run(history())


def test_it_ends_at_whatever_moment_it_is_cancelled() -> None:
    async def history() -> None:
        disk = Disk()
        async with MemoryNetwork() as network:
            for moments in range(60):  # It is connected after some twenty.
                following = follower(network, disk)
                task = asyncio.create_task(following.run(5))
                for _ in range(moments):
                    await asyncio.sleep(0)
                await die(task)
            assert disk.mark is not None, "it was connected in time"

    run(history(), within_s=10)


@pytest.mark.parametrize("seed", range(20))
def test_random_deaths(seed: int) -> None:
    """Subscribers are killed at any moment; connections break; brokers fail, one at a time."""

    async def history() -> None:
        random, disk = Random(seed), Disk()
        limits = Limits(restart_s=0.3)
        async with (
            MemoryNetwork(chain(2), limits=limits) as network,
            network.connect("B2", name="publisher") as publisher,
        ):
            await publisher.advertise("n is a number")
            first = follower(network, disk)
            task = asyncio.create_task(first.run(5))
            await first.in_effect()
            published = 0
            for _ in range(25):
                for _ in range(random.randrange(20)):
                    await publisher.publish({"n": published})
                    published += 1
                await asyncio.sleep(random.random() * 0.01)
                disk.delay_s = random.choice([0.0, 0.001, 0.01])
                chance = random.random()
                if chance < 0.4:
                    await die(task)
                    await asyncio.sleep(random.random() * 0.01)
                    task = asyncio.create_task(follower(network, disk).run(5))
                elif chance < 0.6:
                    network.cut("B1", LocalClient(NAME))
                elif chance < 0.7:
                    # A process and its broker that fail together are two failures.
                    await until(lambda: LocalClient(NAME) in network.nodes["B1"].ports)
                    await asyncio.sleep(0.05)
                    network.crash("B1")
                    await network.restart("B1")
                    await publisher.flush()
            await publisher.flush()
            await until(lambda: len(disk.kept) >= published)
            assert disk.kept == list(range(published))
            await die(task)

    run(history(), within_s=60)
