"""Plans of CRAM carried out on broker processes under load: down to few brokers, and up again.

    python -m benchmarks.croc_live                        # 15 brokers, 20 times, 10 with a kill -9
    python -m benchmarks.croc_live --repetitions 1 --kills 0 --brokers 7

A tree of broker processes with a coordinator.  Publishers and subscribers are spread over it.
`godwit croc plan` gathers and plans, `godwit croc apply` carries the plan out; then the publishers
publish three times as much, and the same is done again with all brokers of the network file.  In
some repetitions a random broker is killed while the plan is carried out, and started again.

It reports what a subscriber sees: the longest time between two deliveries while nothing changes,
and while the network does; brokers and messages before and after.  The exit code is 1 if a delivery
was lost, twice or out of order, if a plan was not carried out, or if a broker that stays is another
process than before.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random

import httpx
import msgspec
import uvloop
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from typer.testing import CliRunner

from benchmarks.draining import registered
from benchmarks.moving import quantile
from godwit.cli import app
from godwit.client import connect
from godwit.content.filters import Filter
from godwit.content.messages import Publication
from godwit.http.http_client import HttpClient
from godwit.overlay.topology import balanced_tree
from godwit.policies.allocation.cbc_settings import ProfilingSettings
from godwit.runtime.processes import Processes
from godwit.runtime.restarting import RestartLimit, supervise
from godwit.runtime.returning import Returning
from godwit.runtime.service import Service
from godwit.runtime.settings import Limits, NetworkSettings, dump_network, network_of
from godwit.simulation.observers import Observer, Observers
from godwit.simulation.oracle import Oracle
from godwit.testing.witness import WitnessedClient, wait_for_deliveries

#: A plan needs 2 to 4 brokers of this bandwidth at first, and about three times as many later.
BANDWIDTH_BYTES_S = 60_000.0
PUBLISHERS = 5
PER_S, LATER_PER_S = 15.0, 45.0
TEXT = "x" * 150
LIMITS_OF_PRICE = (20, 50, 100)
#: Traffic that profiles are made of, and that is measured.
STEADY_S = 12.0
SETTLE_S = 120.0
#: What `godwit croc apply` says while a link is away.
REFUSED = "repeat it when"


class Arrivals(Observer):
    """When each subscriber received something, and when each publisher published."""

    def __init__(self) -> None:
        self.of: dict[str, list[float]] = defaultdict(list)
        self.published: dict[str, list[float]] = defaultdict(list)

    def on_published(self, publication: Publication, now_s: float) -> None:
        self.published[publication.publisher].append(now_s)

    def on_delivered(
        self, clients: Sequence[str], publication: Publication, hops: int, now_s: float
    ) -> None:
        for client in clients:
            self.of[client].append(now_s)


def longest_s(times: dict[str, list[float]], since_s: float, until_s: float) -> list[float]:
    """For each, the longest time between two of them."""
    found = []
    for each in times.values():
        inside = [since_s, *(at_s for at_s in each if since_s <= at_s <= until_s), until_s]
        found.append(max(b - a for a, b in pairwise(inside)))
    return found


@dataclass(slots=True)
class Phase:
    """One plan that was carried out."""

    name: str
    brokers_before: int = 0
    brokers_after: int = 0
    messages_per_s_before: float = 0.0
    messages_per_s_after: float = 0.0
    took_s: float = 0.0
    moved: int = 0
    steady_s: list[float] = field(default_factory=list)
    """The longest time between two deliveries of each subscriber, before."""
    changing_s: list[float] = field(default_factory=list)
    publishing_s: float = 0.0
    """The longest time between two publications of a publisher."""


class Play:
    def __init__(self, running: Processes, coordinator: str, folder: Path, seed: int) -> None:
        self.running = running
        self.random = Random(seed)
        self.wrong: list[str] = []
        self.phases: list[Phase] = []
        self.oracle = Oracle(settle_s=SETTLE_S)
        self.arrivals = Arrivals()
        self._observer = Observers([self.oracle, self.arrivals])
        self._coordinator = coordinator
        self._folder = folder
        self._names = [broker.id for broker in running.network.broker]
        self._file = folder / "network.toml"
        self._file.write_text(dump_network(_with_addresses(running)))
        self._publishers: list[WitnessedClient] = []
        self._per_s = PER_S

    async def enter(self, stack: contextlib.AsyncExitStack, subscribers: int) -> None:
        for number in range(PUBLISHERS):
            each = await self._connect(stack, f"p{number}")
            text = f"class = '{each.name}' and price is a number and text is a string"
            await each.advertise(Filter.parse(text))
            self._publishers.append(each)
        for number in range(subscribers):
            each = await self._connect(stack, f"s{number}")
            wanted, below = number % PUBLISHERS, LIMITS_OF_PRICE[number % len(LIMITS_OF_PRICE)]
            await each.subscribe(Filter.parse(f"class = 'p{wanted}' and price < {below}"))

    async def _connect(self, stack: contextlib.AsyncExitStack, name: str) -> WitnessedClient:
        client = connect(self.running.url(self.random.choice(self._names)), name=name)
        return await stack.enter_async_context(WitnessedClient(client, self._observer))

    @contextlib.asynccontextmanager
    async def publishing(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self._publish(each)) for each in self._publishers]
        try:
            yield
        finally:
            self.wrong += [f"a publisher stopped: {t.exception()}" for t in tasks if t.done()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _publish(self, client: WitnessedClient) -> None:
        while True:
            await asyncio.sleep(self.random.expovariate(self._per_s))
            price = self.random.randrange(100)
            await client.publish({"class": client.name, "price": price, "text": TEXT})

    async def down_and_up(self, *, with_kill: bool) -> None:
        await self._phase("down", with_kill=with_kill)
        self._per_s = LATER_PER_S
        await self._phase("up", with_kill=with_kill)

    async def _phase(self, name: str, *, with_kill: bool) -> None:
        phase = Phase(name)
        self.phases.append(phase)
        steady_s = time.time()
        before = set(self._running())
        phase.brokers_before, phase.messages_per_s_before = len(before), await self._rate()
        begun_s = time.time()
        phase.steady_s = longest_s(self.arrivals.of, steady_s, begun_s)
        plan = self._folder / f"{name}.json"
        await _cli("croc", "plan", str(self._file), "--with-stopped", "--output", str(plan))
        pids = {broker: self.running.pid(broker) for broker in before}
        killed: set[str] = set()
        killing = asyncio.create_task(self._kill(killed)) if with_kill else None
        applied_s = time.time()
        options = ("--at", self._coordinator, "--per-s", "50", "--json")
        said = REFUSED
        while REFUSED in said:  # A broker that was killed just before is not back yet.
            said = await _cli("croc", "apply", str(plan), *options, may_fail=True)
            await asyncio.sleep(1.0 if REFUSED in said else 0.0)
        ended_s = time.time()
        if killing is not None:
            await killing
        self._judge(phase, said, pids, killed)
        phase.took_s = ended_s - applied_s
        phase.changing_s = longest_s(self.arrivals.of, applied_s, ended_s)
        phase.publishing_s = max(longest_s(self.arrivals.published, applied_s, ended_s))
        phase.brokers_after, phase.messages_per_s_after = len(self._running()), await self._rate()

    def _judge(self, phase: Phase, said: str, pids: dict[str, int], killed: set[str]) -> None:
        try:
            change = json.loads(said)
        except ValueError:
            self.wrong.append(f"{phase.name}: {said.strip()[:500]}")
            return
        if change["state"] != "done":
            self.wrong.append(f"{phase.name}: {change['state']}: {change.get('because')}")
        phase.moved = sum(step["moved"] for step in change["steps"])
        others = [
            broker
            for broker in self._running()
            if broker in pids and broker not in killed and self.running.pid(broker) != pids[broker]
        ]
        if others:
            self.wrong.append(f"{phase.name}: other processes than before: {', '.join(others)}")

    async def _kill(self, killed: set[str]) -> None:
        await asyncio.sleep(self.random.uniform(0.1, 3.0))
        victim = self.random.choice(self._running())
        with contextlib.suppress(ProcessLookupError, KeyError):
            os.kill(self.running.pid(victim), signal.SIGKILL)
            killed.add(victim)

    def _running(self) -> list[str]:
        found = []
        for name in self._names:
            with contextlib.suppress(KeyError):
                self.running.pid(name)
                found.append(name)
        return found

    async def _rate(self) -> float:
        """Messages that all brokers take in per second, over a while."""
        first, start_s = await self._handled(), time.monotonic()
        await asyncio.sleep(STEADY_S)
        return (await self._handled() - first) / (time.monotonic() - start_s)

    async def _handled(self) -> float:
        total = 0.0
        async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(retries=8)) as caller:
            for broker in self._running():  # One that was killed may be on its way back.
                text = (await caller.get(f"{self.running.http(broker)}/metrics")).text
                total += sum(
                    sample.value
                    for family in text_string_to_metric_families(text)
                    for sample in family.samples
                    if sample.name == "godwit_messages_handled_total"
                )
        return total

    async def check(self) -> None:
        publishers = [each.client for each in self._publishers]
        await wait_for_deliveries(self.oracle, *publishers, within_s=SETTLE_S)
        self.oracle.finish(time.time())
        self.wrong += [str(violation) for violation in self.oracle.violations[:5]]


def _with_addresses(running: Processes) -> NetworkSettings:
    brokers = [
        msgspec.structs.replace(each, http=running.http(each.id).removeprefix("http://"))
        for each in running.network.broker
    ]
    return msgspec.structs.replace(running.network, broker=brokers)


async def _cli(*words: str, may_fail: bool = False) -> str:
    result = await asyncio.to_thread(CliRunner().invoke, app, list(words))
    if result.exit_code and not may_fail:
        raise RuntimeError(f"godwit {' '.join(words)}: {result.output} {result.exception}")
    return result.stdout or f"{result.output} {result.exception}"


async def repetition(arguments: argparse.Namespace, number: int) -> Play:
    with tempfile.TemporaryDirectory(prefix="godwit-") as name:
        folder = Path(name)
        options = ("--listen", "127.0.0.1:0", "--state", str(folder / "state"), "--report-s", "1")
        async with (
            Service("coordinator", *options) as coordinator,
            HttpClient(coordinator.url, attempts=10) as caller,
        ):
            network = network_of(balanced_tree(arguments.brokers, fanout=2), http_port=0)
            brokers = [
                msgspec.structs.replace(each, output_bandwidth_bytes_s=BANDWIDTH_BYTES_S)
                for each in network.broker
            ]
            network = msgspec.structs.replace(
                network,
                broker=brokers,
                coordinator=coordinator.url,
                limits=Limits(link_s=60.0, restart_s=5.0),
                profiling=ProfilingSettings(),
            )
            async with Processes(network, supervised=True) as running:
                returning = Returning(running)
                processes = [returning.supervised(broker.id) for broker in network.broker]
                supervising = asyncio.create_task(supervise(processes, RestartLimit(50)))
                try:
                    await registered(caller, arguments.brokers)
                    play = Play(running, coordinator.url, folder, arguments.seed + number)
                    async with contextlib.AsyncExitStack() as stack:
                        await play.enter(stack, arguments.subscribers)
                        async with play.publishing():
                            await play.down_and_up(with_kill=number < arguments.kills)
                        await play.check()
                    return play
                finally:
                    supervising.cancel()
                    await asyncio.gather(supervising, return_exceptions=True)


def _said(phase: Phase) -> str:
    return (
        f"{phase.name}: {phase.brokers_before} -> {phase.brokers_after} brokers,"
        f" {phase.messages_per_s_before:.0f} -> {phase.messages_per_s_after:.0f} messages/s,"
        f" {phase.moved} clients moved, {phase.took_s:.1f} s; longest gap of a subscriber p50"
        f" {quantile(phase.steady_s, 0.5):.2f} -> {quantile(phase.changing_s, 0.5):.2f} s, p99"
        f" {quantile(phase.steady_s, 0.99):.2f} -> {quantile(phase.changing_s, 0.99):.2f} s;"
        f" longest between publications {phase.publishing_s:.2f} s"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.croc_live", description=__doc__)
    parser.add_argument("--brokers", type=int, default=15)
    parser.add_argument("--subscribers", type=int, default=60)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--kills", type=int, default=10, help="repetitions with a kill -9")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    console = Console(width=160)
    wrong = 0
    for number in range(arguments.repetitions):
        play = uvloop.run(repetition(arguments, number))
        killed = ", with a kill -9 in each" if number < arguments.kills else ""
        console.print(
            f"[bold]seed {arguments.seed + number}[/]: {play.oracle.publications:,} publications,"
            f" {play.oracle.deliveries:,} deliveries, {play.oracle.violation_count} violations"
            + killed
        )
        for phase in play.phases:
            console.print(f"  {_said(phase)}")
        for text in play.wrong:
            console.print(f"  WRONG: {text}", style="red")
        wrong += bool(play.wrong)
    console.print(f"{arguments.repetitions} repetitions, {wrong} with something wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
