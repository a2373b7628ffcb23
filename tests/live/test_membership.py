"""Broker processes that join a running network, are drained and leave it, without loss."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from random import Random

from tests.asynchronous import run
from tests.sweeps import seeds

import godwit
from godwit.api.broker_api import DRAIN, DrainRequest
from godwit.content.filters import Filter
from godwit.errors import RefusedError
from godwit.http.http_client import HttpClient
from godwit.overlay.topology import chain
from godwit.runtime.processes import Processes
from godwit.runtime.settings import BrokerSettings, network_of
from godwit.simulation.oracle import Oracle
from godwit.testing.witness import WitnessedClient, wait_for_deliveries

ROUNDS = seeds(3, whole=10)
BROKERS = ("B1", "B2", "B3")


@contextlib.asynccontextmanager
async def publishing(clients: list[WitnessedClient], random: Random) -> AsyncIterator[None]:
    """Every client publishes a little, all the time."""

    async def publish(client: WitnessedClient) -> None:
        await client.advertise(Filter.parse(f"class = '{client.name}' and size is present"))
        while True:
            await client.publish({"class": client.name, "size": random.randrange(100)})
            await asyncio.sleep(random.uniform(0.0, 0.01))

    tasks = [asyncio.create_task(publish(client)) for client in clients]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def one_round(running: Processes, oracle: Oracle, seed: int) -> None:
    random, leaf = Random(seed), f"L{seed}"
    # A name, its way into the running network, and ports of its own.
    neighbour, target = random.choice(BROKERS), random.choice(BROKERS)
    settings = BrokerSettings(id=leaf, links=[neighbour], http="127.0.0.1:0")
    async with contextlib.AsyncExitStack() as stack:

        async def client(name: str, at: str) -> WitnessedClient:
            connected = godwit.connect(running.url(at), name=f"{name}{seed}")
            return await stack.enter_async_context(WitnessedClient(connected, oracle))

        here = [await client(f"at{broker}-", broker) for broker in BROKERS]
        await here[0].subscribe(Filter.parse("size > 30"))
        async with publishing(here, random):
            await running.join(settings)
            there = [await client("first", leaf), await client("second", leaf)]
            for each in there:  # Before the leaf has learnt anything.
                await each.subscribe(Filter.parse(f"size > {random.choice((-1, 50))}"))
            async with publishing(there, random):
                await asyncio.sleep(0.2)
                request = DrainRequest(address=running.url(target), broker=target)
                async with HttpClient(running.http(leaf)) as http:
                    outcome = await http.call(DRAIN, request)
                assert sorted(outcome.moved) == sorted(each.name for each in there), outcome
                assert not outcome.stayed
                with contextlib.suppress(RefusedError):
                    async with godwit.connect(running.url(leaf), name="late"):
                        raise AssertionError("a broker that is drained refuses new clients")
                assert await running.leave(leaf) == 0
                await asyncio.sleep(0.1)
        await wait_for_deliveries(oracle, within_s=10.0)
    assert oracle.is_satisfied, [str(violation) for violation in oracle.violations]


def test_leaf_brokers_join_are_drained_and_leave_without_loss() -> None:
    async def scenario() -> None:
        oracle = Oracle(settle_s=30.0)
        async with Processes(network_of(chain(3))) as running:
            pids = [running.pid(broker) for broker in BROKERS]
            for seed in range(ROUNDS):
                before = oracle.deliveries
                await one_round(running, oracle, seed)
                assert oracle.deliveries > before, f"round {seed}: nothing was delivered"
            assert [running.pid(broker) for broker in BROKERS] == pids
            assert len(running.network.broker) == 3

    run(scenario(), within_s=300.0)
