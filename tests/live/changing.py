"""A network of broker processes with a coordinator, and clients that the oracle watches."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from random import Random

import msgspec
from tests.live.coordinating import CoordinatorProcess
from tests.live.watching import until

import godwit
from godwit.api import network_api
from godwit.api.network_api import ChangeKind, ChangeRequest, NetworkChange
from godwit.content.filters import Filter
from godwit.http.http_client import HttpClient
from godwit.http.operations import Nothing
from godwit.overlay.topology import Topology, star
from godwit.runtime.processes import Processes
from godwit.runtime.restarting import RestartLimit, supervise
from godwit.runtime.returning import Returning
from godwit.runtime.settings import Limits, NetworkSettings, network_of
from godwit.simulation.oracle import Oracle
from godwit.testing.witness import WitnessedClient, wait_for_deliveries

SETTLE_S = 60.0
WANTED = ("n < 50", "third = 0", "n >= 30 and third = 1", "n is present")


class ChangingNetwork:
    def __init__(
        self, running: Processes, coordinator: CoordinatorProcess, caller: HttpClient
    ) -> None:
        self.running = running
        self.coordinator = coordinator
        self.caller = caller
        self.oracle = Oracle(settle_s=SETTLE_S)
        self.stack = contextlib.AsyncExitStack()
        self.clients: list[WitnessedClient] = []
        self.publishers: list[WitnessedClient] = []

    # -- clients -------------------------------------------------------------------------------

    async def enter(self, name: str, at: str) -> WitnessedClient:
        client = godwit.connect(self.running.url(at), name=name)
        witnessed = await self.stack.enter_async_context(WitnessedClient(client, self.oracle))
        self.clients.append(witnessed)
        return witnessed

    async def subscribers(self, count: int, at: str) -> list[WitnessedClient]:
        found = [await self.enter(f"s{at}-{number}", at) for number in range(count)]
        for number, each in enumerate(found):
            await each.subscribe(Filter.parse(WANTED[number % len(WANTED)]))
        return found

    async def publisher(self, at: str) -> WitnessedClient:
        each = await self.enter(f"p{at}", at)
        name = each.name
        await each.advertise(
            Filter.parse(f"class = '{name}' and n is present and third is present")
        )
        self.publishers.append(each)
        return each

    @contextlib.asynccontextmanager
    async def publishing(
        self, per_s: float = 50.0, *, seed: int = 1, may_restart: bool = False
    ) -> AsyncIterator[None]:
        """Every publisher publishes; at the end, everything must have arrived.

        Without `may_restart`, no client has lost its session on the way.
        """

        async def publish(client: WitnessedClient, random: Random) -> None:
            while True:
                number = random.randrange(100)
                await client.publish({"class": client.name, "n": number, "third": number % 3})
                await asyncio.sleep(random.expovariate(per_s))

        tasks = [
            asyncio.create_task(publish(each, Random(seed + number)))
            for number, each in enumerate(self.publishers)
        ]
        try:
            yield
        finally:
            ended = [task for task in tasks if task.done()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert not ended, [task.exception() for task in ended]
        await self.check()
        assert may_restart or not any(each.client.restarts for each in self.clients)

    async def check(self) -> None:
        """Nothing is lost, twice, or out of order."""
        publishers = [each.client for each in self.publishers]
        await wait_for_deliveries(self.oracle, *publishers, within_s=SETTLE_S)
        self.oracle.finish(time.time())
        assert self.oracle.is_satisfied, [str(each) for each in self.oracle.violations[:5]]
        assert self.oracle.deliveries > 0

    def at(self, broker: str) -> list[str]:
        return sorted(c.name for c in self.clients if c.client.session.broker == broker)

    # -- changes -------------------------------------------------------------------------------

    async def begin(self, kind: ChangeKind, *brokers: str, **fields: object) -> NetworkChange:
        usual = ChangeRequest(kind=kind, brokers=list(brokers), asked_by="a test", per_s=50.0)
        request = msgspec.structs.replace(usual, **fields)
        return await self.caller.call(network_api.BEGIN_CHANGE, request)

    async def ended(self, change: NetworkChange) -> NetworkChange:
        while not change.is_over:
            await asyncio.sleep(0.1)
            change = await self.change(change.number)
        return change

    async def change(self, number: int) -> NetworkChange:
        return await self.caller.call(network_api.CHANGE, network_api.WhichChange(number))

    async def changes(self) -> network_api.ChangeList:
        return await self.caller.call(network_api.CHANGES, network_api.WhichChanges())

    async def carry_out(self, kind: ChangeKind, *brokers: str, **fields: object) -> NetworkChange:
        return await self.ended(await self.begin(kind, *brokers, **fields))

    async def abort(self) -> NetworkChange:
        return await self.ended(
            await self.caller.call(network_api.ABORT_CHANGE, network_api.AbortRequest())
        )

    async def until_moved(self, change: NetworkChange, count: int) -> None:
        """Wait until so many clients have moved in the change."""
        while sum(step.moved for step in change.steps) < count:
            await asyncio.sleep(0.05)
            change = await self.change(change.number)
            assert not change.is_over, change

    async def view(self) -> network_api.NetworkView:
        return await self.caller.call(network_api.NETWORK, Nothing())

    async def until_registered(self, count: int) -> None:
        async def are_there() -> bool:
            return len((await self.view()).brokers) >= count

        await until(are_there)

    async def account(self, broker: str) -> network_api.BrokerAccount:
        async with HttpClient(self.running.http(broker)) as caller:
            (found,) = (await caller.call(network_api.NETWORK, Nothing())).brokers
        assert found.account is not None
        return found.account


@contextlib.asynccontextmanager
async def changing(
    folder: Path,
    topology: Topology | None = None,
    *options: str,
    change_settings: Callable[[NetworkSettings], NetworkSettings] = lambda settings: settings,
) -> AsyncIterator[ChangingNetwork]:
    """Brokers that are started again when they end, as by `godwit up --restart`."""
    coordinator = CoordinatorProcess(folder / "state", "--report-s", "1", *options)
    async with coordinator, HttpClient(coordinator.url, attempts=30) as caller:
        settings = network_of(topology or star(3), http_port=0)
        settings = change_settings(_with_coordinator(settings, coordinator.url))
        async with Processes(settings, supervised=True) as running:
            network = ChangingNetwork(running, coordinator, caller)
            brokers = [broker.id for broker in running.network.broker]
            supervising = asyncio.create_task(_supervise(running, brokers))
            try:
                async with network.stack:
                    await network.until_registered(len(brokers))
                    yield network
            finally:
                supervising.cancel()
                await asyncio.gather(supervising, return_exceptions=True)


def _with_coordinator(settings: NetworkSettings, url: str) -> NetworkSettings:
    # A busy machine starts processes slowly, and lets clients reconnect slowly.
    limits = Limits(link_s=60.0, restart_s=5.0)
    return msgspec.structs.replace(settings, coordinator=url, limits=limits)


async def _supervise(running: Processes, brokers: list[str]) -> str:
    returning = Returning(running)
    processes = [returning.supervised(broker) for broker in brokers]
    return await supervise(processes, RestartLimit(restarts=20))
