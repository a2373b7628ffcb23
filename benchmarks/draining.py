"""A broker with many clients is drained, undrained, and all brokers are restarted, under load.

    python -m benchmarks.draining                             # 1,000 clients, 50 per second
    python -m benchmarks.draining --clients 200 --per-s 20
    python -m benchmarks.draining --only restart --brokers 7

Broker processes in a tree with a coordinator process; publishers at a steady rate; all clients and
the oracle are in this process.  It reports what the commands `godwit network drain` and `restart`
report: how long it took, how many clients moved; and how long deliveries took meanwhile, from the
publisher to the application.  The exit code is 1 if a delivery was lost, twice or out of order, if
a client did not move, or if a drain took more than twice the time that its pace allows.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from random import Random

import msgspec
import uvloop
from rich.console import Console

from benchmarks.moving import quantile
from godwit.api import network_api
from godwit.api.network_api import ChangeKind, ChangeRequest, ChangeState, NetworkChange
from godwit.client import connect
from godwit.content.filters import Filter
from godwit.content.messages import Publication
from godwit.http.http_client import HttpClient
from godwit.http.operations import Nothing
from godwit.overlay.topology import balanced_tree
from godwit.runtime.processes import Processes
from godwit.runtime.restarting import RestartLimit, Supervised, supervise
from godwit.runtime.service import Service
from godwit.runtime.settings import Limits, network_of
from godwit.simulation.observers import Observer, Observers
from godwit.simulation.oracle import Oracle
from godwit.testing.witness import WitnessedClient, wait_for_deliveries

SETTLE_S = 120.0
#: Different values of the attribute that subscribers select by.
GROUPS = 100


class Watch(Observer):
    """How long deliveries took, and when they came."""

    def __init__(self) -> None:
        self._published_s: dict[tuple[str, int], float] = {}
        self._delays_s: list[tuple[float, float]] = []

    def on_published(self, publication: Publication, now_s: float) -> None:
        self._published_s[publication.publisher, publication.sequence] = now_s

    def on_delivered(
        self, clients: Sequence[str], publication: Publication, hops: int, now_s: float
    ) -> None:
        start_s = self._published_s[publication.publisher, publication.sequence]
        self._delays_s += [(now_s, now_s - start_s)] * len(clients)

    def delays_s(self, since_s: float) -> list[float]:
        return [delay_s for at_s, delay_s in self._delays_s if at_s >= since_s]


class Scene:
    def __init__(self, running: Processes, caller: HttpClient, console: Console) -> None:
        self.running = running
        self.caller = caller
        self.console = console
        self.oracle = Oracle(settle_s=SETTLE_S)
        self.watch = Watch()
        self._observer = Observers([self.oracle, self.watch])
        self.clients: list[WitnessedClient] = []
        self.is_good = True

    async def enter(
        self, stack: contextlib.AsyncExitStack, name: str, broker: str
    ) -> WitnessedClient:
        client = WitnessedClient(connect(self.running.url(broker), name=name), self._observer)
        self.clients.append(await stack.enter_async_context(client))
        return client

    async def change(self, kind: ChangeKind, *brokers: str, per_s: float) -> NetworkChange:
        """Carry a change out, and print what came of it."""
        start_s = time.time()
        request = ChangeRequest(
            kind=kind, brokers=list(brokers), per_s=per_s, asked_by="benchmarks.draining"
        )
        change = await self.caller.call(network_api.BEGIN_CHANGE, request)
        while not change.is_over:
            await asyncio.sleep(0.2)
            which = network_api.WhichChange(change.number)
            change = await self.caller.call(network_api.CHANGE, which)
        await asyncio.sleep(2.0)  # Deliveries that are late.
        took_s = (change.ended_s or 0.0) - change.asked_s
        moved = sum(step.moved for step in change.steps)
        delays = self.watch.delays_s(start_s)
        self.console.print(
            f"{kind.value} {', '.join(brokers)}: {change.state.value} in {took_s:.1f} s,"
            f" {moved} moves at {per_s:g} per second {change.because}"
        )
        if delays:
            self.console.print(
                f"  delay of {len(delays):,} deliveries: p50 {1e3 * quantile(delays, 0.5):.0f} ms,"
                f" p99 {1e3 * quantile(delays, 0.99):.0f} ms, worst {1e3 * max(delays):.0f} ms"
            )
        self.is_good &= change.state is ChangeState.DONE
        return change


@contextlib.asynccontextmanager
async def scene(brokers: int, link_s: float, console: Console) -> AsyncIterator[Scene]:
    """Brokers that are started again when they end, and their coordinator."""
    with tempfile.TemporaryDirectory(prefix="godwit-") as folder:
        options = ("--listen", "127.0.0.1:0", "--state", str(Path(folder) / "state"))
        coordinator = Service("coordinator", *options, "--report-s", "2")
        async with coordinator, HttpClient(coordinator.url, attempts=10) as caller:
            network = network_of(balanced_tree(brokers, fanout=2), http_port=0)
            limits = Limits(link_s=link_s)
            network = msgspec.structs.replace(network, coordinator=coordinator.url, limits=limits)
            async with Processes(network, supervised=True) as running:
                names = [broker.id for broker in running.network.broker]
                processes = [
                    Supervised(name, partial(running.wait, name), partial(running.restart, name))
                    for name in names
                ]
                supervising = asyncio.create_task(supervise(processes, RestartLimit(50)))
                try:
                    await registered(caller, brokers)
                    yield Scene(running, caller, console)
                finally:
                    supervising.cancel()
                    await asyncio.gather(supervising, return_exceptions=True)


async def registered(caller: HttpClient, brokers: int) -> None:
    """Wait until the coordinator knows all brokers."""
    known = 0
    while known < brokers:
        await asyncio.sleep(0.1)
        known = len((await caller.call(network_api.NETWORK, Nothing())).brokers)


async def publish(client: WitnessedClient, per_s: float, random: Random) -> None:
    loop = asyncio.get_running_loop()
    next_s = loop.time()
    while True:
        next_s += random.expovariate(per_s)
        await asyncio.sleep(next_s - loop.time())
        group = random.randrange(GROUPS)
        await client.publish({"class": client.name, "group": group})


async def measured(arguments: argparse.Namespace, console: Console) -> bool:
    random = Random(arguments.seed)
    async with (
        scene(arguments.brokers, arguments.link_s, console) as stage,
        contextlib.AsyncExitStack() as stack,
    ):
        names = [broker.id for broker in stage.running.network.broker]
        crowded, others = names[-1], names[:-1]
        publishers = []
        for number, broker in enumerate((names[0], crowded)):
            publisher = await stage.enter(stack, f"p{number}", broker)
            await publisher.advertise(
                Filter.parse(f"class = '{publisher.name}' and group is present")
            )
            publishers.append(publisher)
        start_s = time.monotonic()
        is_drain = arguments.only != "restart"
        for number in range(arguments.clients):
            broker = crowded if is_drain else names[number % len(names)]
            client = await stage.enter(stack, f"s{number}", broker)
            await client.subscribe(Filter.parse(f"group = {number % GROUPS}"))
        for number in range(2 * len(others)):
            client = await stage.enter(stack, f"o{number}", others[number % len(others)])
            await client.subscribe(Filter.parse("group is present"))
        console.print(
            f"{arguments.clients} subscribers at"
            f" {crowded if is_drain else 'all brokers'}, {len(stage.clients)} clients in all, at"
            f" {len(names)} brokers, after {time.monotonic() - start_s:.0f} s"
        )
        talking = [
            asyncio.create_task(publish(each, arguments.publications_per_s / 2, random))
            for each in publishers
        ]
        if is_drain:
            change = await stage.change(ChangeKind.DRAIN, crowded, per_s=arguments.per_s)
            paced_s = change.steps[0].moved / arguments.per_s
            took_s = (change.steps[0].ended_s or 0.0) - (change.steps[0].began_s or 0.0)
            stage.is_good &= change.steps[0].moved >= arguments.clients and took_s <= 2 * paced_s
            console.print(f"  {took_s:.1f} s is {took_s / paced_s:.2f} of the paced time")
            await stage.change(ChangeKind.UNDRAIN, crowded, per_s=arguments.per_s)
        if arguments.only != "drain":
            before = [stage.running.pid(name) for name in names]
            await stage.change(ChangeKind.RESTART, *names, per_s=arguments.per_s)
            new = {stage.running.pid(name) for name in names}.isdisjoint(before)
            stage.is_good &= new
        for task in talking:
            task.cancel()
        await asyncio.gather(*talking, return_exceptions=True)
        oracle = stage.oracle
        await wait_for_deliveries(oracle, *(p.client for p in publishers), within_s=SETTLE_S)
        oracle.finish(time.time())
        restarts = sum(client.client.restarts for client in stage.clients)
        gaps = sum(len(client.client.gaps.seen) for client in stage.clients)
        console.print(
            f"{oracle.publications:,} publications, {oracle.deliveries:,} deliveries,"
            f" {oracle.violation_count} violations, {restarts} restarts of sessions,"
            f" {gaps} gaps told"
        )
        for violation in oracle.violations[:5]:
            console.print(f"  {violation}")
        return stage.is_good and oracle.is_satisfied


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.draining", description=__doc__)
    parser.add_argument("--clients", type=int, default=1_000)
    parser.add_argument("--per-s", type=float, default=50.0, help="clients that move in a second")
    parser.add_argument("--brokers", type=int, default=7)
    parser.add_argument("--publications-per-s", type=float, default=100.0)
    parser.add_argument("--link-s", type=float, default=10.0, help="more on a busy machine")
    parser.add_argument("--only", choices=["drain", "restart"], default=None)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    console = Console(width=120)
    return 0 if uvloop.run(measured(arguments, console)) else 1


if __name__ == "__main__":
    sys.exit(main())
