"""Channels through real clients and brokers, in memory; the data cluster is a small one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from tests.sharing.clusters import CHANNEL, MemoryCluster

from godwit import ChannelEvent, ChannelEvents, RefusedError, StayedError
from godwit.broker.stimuli import LocalClient
from godwit.content.channel_messages import Row
from godwit.overlay.topology import chain
from godwit.runtime.settings import Limits
from godwit.testing.memory_network import MemoryNetwork


def run(history: Callable[[MemoryCluster], Coroutine[Any, Any, None]]) -> None:
    async def within_time() -> None:
        async with asyncio.timeout(30):
            await history(MemoryCluster())

    asyncio.run(within_time())


def numbers(cluster: MemoryCluster, n: int, count: int = 3) -> None:
    """One execution with so many rows for the subscription with the argument n."""
    execution = cluster.execution + 1
    rows: list[Row] = [{"n": n, "execution": execution, "k": k} for k in range(count)]
    cluster.execute({cluster.ids[f"{float(n)}"]: rows})


async def take(events: ChannelEvents, count: int) -> list[tuple[int, int]]:
    taken: list[ChannelEvent] = [await anext(events) for _ in range(count)]
    assert all(e.content["execution"] == e.execution and e.content["k"] == e.row for e in taken)
    return [(event.execution, event.row) for event in taken]


async def until(done: Callable[[], bool]) -> None:
    while not done():  # noqa: ASYNC110
        await asyncio.sleep(0.005)


def test_results_reach_all_that_share_a_subscription() -> None:
    async def history(cluster: MemoryCluster) -> None:
        network = MemoryNetwork(chain(2), cluster=cluster)
        async with (
            network,
            network.connect("B1") as a,
            network.connect("B1") as b,
            network.connect("B2") as c,
            a.subscribe_channel(CHANNEL, n=1) as of_a,
            b.subscribe_channel(CHANNEL, n=1) as of_b,
            c.subscribe_channel(CHANNEL, n=1.0) as of_c,
            c.subscribe_channel(CHANNEL, n=2) as other,
        ):
            for events in (of_a, of_b, of_c, other):
                await events.in_effect()
            numbers(cluster, 1)
            numbers(cluster, 2, 1)
            for events in (of_a, of_b, of_c):
                assert await take(events, 3) == [(1, 0), (1, 1), (1, 2)]
            assert await take(other, 1) == [(2, 0)]
            channels = network.nodes["B1"].channels
            assert channels is not None
            assert (channels.desk.front_ends, channels.desk.back_ends) == (2, 1)
            assert len(cluster.ids) == 2
            soon_s = network.nodes["B1"].now_s() + 30
            assert channels.rates_of(channels.online(), soon_s)[0] > 0
            assert channels.bytes_out == 2 * channels.bytes_in

    run(history)


@pytest.mark.parametrize("asked", ["create_broker", "notices", "subscribe", "pull"])
def test_an_answer_that_nobody_has_thought_of_is_not_the_end(
    asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, wrong = getattr(MemoryCluster, asked), iter([True])

    async def once_wrong(cluster: MemoryCluster, request: object) -> object:
        if next(wrong, False):
            raise LookupError("nobody has thought of that")
        return await real(cluster, request)

    async def history(cluster: MemoryCluster) -> None:
        async with (
            MemoryNetwork(chain(1), cluster=cluster) as network,
            network.connect("B1") as a,
            a.subscribe_channel(CHANNEL, n=1) as events,
        ):
            await events.in_effect()
            numbers(cluster, 1)
            assert await take(events, 3) == [(1, 0), (1, 1), (1, 2)]
            assert next(wrong, False) is False

    monkeypatch.setattr(MemoryCluster, asked, once_wrong)
    run(history)


def test_a_channel_that_there_is_not_is_refused() -> None:
    async def history(cluster: MemoryCluster) -> None:
        network = MemoryNetwork(cluster=cluster)
        async with (
            network,
            network.connect() as client,
            client.subscribe_channel("Nonsense") as events,
        ):
            with pytest.raises(RefusedError, match="there is no channel Nonsense"):
                await events.in_effect()
            with pytest.raises(RefusedError, match="there is no channel Nonsense"):
                await anext(events)

    run(history)


def test_without_a_data_cluster_there_are_no_channels() -> None:
    async def history(_cluster: MemoryCluster) -> None:
        network = MemoryNetwork()
        async with (
            network,
            network.connect() as client,
            client.subscribe_channel(CHANNEL, n=1) as events,
        ):
            with pytest.raises(RefusedError, match="has no data cluster"):
                await events.in_effect()

    run(history)


def test_a_client_that_was_away_goes_on_where_it_was() -> None:
    async def history(cluster: MemoryCluster) -> None:
        network = MemoryNetwork(cluster=cluster)
        async with (
            network,
            network.connect(name="a") as client,
            client.subscribe_channel(CHANNEL, n=1) as events,
        ):
            await events.in_effect()
            numbers(cluster, 1)
            assert await take(events, 2) == [(1, 0), (1, 1)]
            network.cut("B1", LocalClient("a"))
            numbers(cluster, 1, 2)
            assert await take(events, 3) == [(1, 2), (2, 0), (2, 1)]

    run(history)


def test_a_client_that_moves_goes_on_where_it_was() -> None:
    async def history(cluster: MemoryCluster) -> None:
        network = MemoryNetwork(chain(2), cluster=cluster)
        async with (
            network,
            network.connect("B1", name="a") as client,
            client.subscribe_channel(CHANNEL, n=1) as events,
        ):
            await events.in_effect()
            numbers(cluster, 1)
            await client.move(network.url("B2"))
            numbers(cluster, 1, 1)
            assert await take(events, 4) == [(1, 0), (1, 1), (1, 2), (2, 0)]
            await until(lambda: cluster.holders[0] == {"B2"})
            assert cluster.released == {0}

    run(history)


def test_a_broker_that_fails_is_no_loss() -> None:
    async def history(cluster: MemoryCluster) -> None:
        network = MemoryNetwork(cluster=cluster)
        async with (
            network,
            network.connect(name="a") as client,
            client.subscribe_channel(CHANNEL, n=1) as events,
        ):
            await events.in_effect()
            numbers(cluster, 1)
            assert await take(events, 1) == [(1, 0)]
            network.crash("B1")
            numbers(cluster, 1, 2)
            await network.restart("B1")
            assert await take(events, 4) == [(1, 1), (1, 2), (2, 0), (2, 1)]

    run(history)


def test_a_data_cluster_that_is_away_is_waited_for() -> None:
    async def history(cluster: MemoryCluster) -> None:
        network = MemoryNetwork(cluster=cluster)
        cluster.is_away = True
        async with (
            network,
            network.connect() as client,
            client.subscribe_channel(CHANNEL, n=1) as events,
        ):
            await asyncio.sleep(0.1)
            cluster.is_away = False
            await events.in_effect()
            cluster.is_away = True
            numbers(cluster, 1)
            await asyncio.sleep(0.1)
            cluster.is_away = False
            assert await take(events, 3) == [(1, 0), (1, 1), (1, 2)]

    run(history)


def test_who_does_not_read_holds_nobody_up_and_misses_nothing() -> None:
    async def history(cluster: MemoryCluster) -> None:
        limits = Limits(window_bytes=4096)
        network = MemoryNetwork(cluster=cluster, limits=limits)
        async with (
            network,
            network.connect(name="slow") as slow,
            network.connect() as quick,
            slow.subscribe_channel(CHANNEL, n=1) as unread,
            quick.subscribe_channel(CHANNEL, n=1) as read,
        ):
            for events in (unread, read):
                await events.in_effect()
            executions, size = 300, 50
            for _ in range(executions):
                numbers(cluster, 1, size)
                await take(read, size)
            port = network.nodes["B1"].ports[LocalClient("slow")]
            assert port.stream.pending_bytes + port.stream.unacknowledged_bytes < 300_000
            taken = await take(unread, executions * size)
            assert taken == [(e + 1, k) for e in range(executions) for k in range(size)]

    run(history)


def test_the_data_cluster_hears_what_is_no_longer_needed() -> None:
    async def history(cluster: MemoryCluster) -> None:
        network = MemoryNetwork(cluster=cluster)
        async with (
            network,
            network.connect() as client,
            client.subscribe_channel(CHANNEL, n=1) as events,
        ):
            await events.in_effect()
            numbers(cluster, 1)
            await take(events, 3)
            await until(lambda: cluster.acknowledged.get(("B1", 0)) == (2, 0))

    run(history)


@pytest.mark.parametrize("seed", range(12))
def test_random_histories(seed: int) -> None:
    """Clients come, move, lose connections; brokers crash; executions go on all the time."""

    async def history(cluster: MemoryCluster) -> None:
        random = Random(seed)
        network = MemoryNetwork(chain(3), cluster=cluster, limits=Limits(restart_s=0.05))
        async with network:
            followed = [follow(network, random, f"c{number}") for number in range(4)]
            people = [asyncio.create_task(each) for each in followed]
            while not all(task.done() for task in people):
                if cluster.ids:
                    numbers(cluster, random.choice([1, 2]) if len(cluster.ids) > 1 else 1, 2)
                if random.random() < 0.05:
                    broker = random.choice(sorted(network.nodes))
                    network.crash(broker)
                    await asyncio.sleep(0.02)
                    await network.restart(broker)
                await asyncio.sleep(0.01)
            await asyncio.gather(*people)

    async def follow(network: MemoryNetwork, random: Random, name: str) -> None:
        """Read a while: rows come without a gap from the first one on."""
        async with (
            network.connect(f"B{random.randrange(3) + 1}", name=name, fall_back_s=0.1) as client,
            client.subscribe_channel(CHANNEL, n=1) as events,
        ):
            taken = list[tuple[int, int]]()
            while len(taken) < 60:
                taken += await take(events, 1)
                if random.random() < 0.1:
                    await disturb(network, random, name, client.move)
            executions = sorted({execution for execution, _ in taken})
            assert taken == [(e, k) for e in executions for k in range(2)][: len(taken)]
            wanted = [e for e in sorted(cluster_of(network).rows[0]) if e >= executions[0]]
            assert executions == wanted[: len(executions)]

    async def disturb(
        network: MemoryNetwork, random: Random, name: str, move: Callable[[str], Awaitable[object]]
    ) -> None:
        if random.random() < 0.5:
            for broker in network.nodes:
                network.cut(broker, LocalClient(name))
        else:
            with suppress(StayedError):
                await move(network.url(f"B{random.randrange(3) + 1}"))

    def cluster_of(network: MemoryNetwork) -> MemoryCluster:
        assert isinstance(network._cluster, MemoryCluster)
        return network._cluster

    run(history)
