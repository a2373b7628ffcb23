"""Twelve live brokers as a tree and in three clusters: work for a publication, and delay.

    python -m benchmarks.clusters_live
    python -m benchmarks.clusters_live --brokers 20 --clusters 4 --filters 100

W1: stock quotes and filters of the thesis's templates, dealt to one subscriber at each broker; a
publisher at each broker.  Both networks run at the same time and are measured in turns, so that
they share the noise of the machine; which of them is first alternates.

forwarded   publications that brokers handle in a second of their processor time; and publications
            of clients, which in a tree cost more or fewer of these
delay       from the publisher to the subscriber, with so many publications a second in all
links       between publisher's and subscriber's broker, from a trace of a run of its own

Each record must reach exactly the subscribers with a matching filter.  The exit code is 1 if one
does not, if clusters forward less than 0.8 of the tree's rate, or if their p99 is not lower.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from urllib.request import urlopen

import msgspec
import pyarrow.dataset
import uvloop
from rich.console import Console

from benchmarks.forwarding_workloads import ForwardingWorkload, stock_quotes
from benchmarks.moving import quantile
from godwit.client import Client, Events, connect
from godwit.overlay.topology import balanced_tree, chain
from godwit.runtime.processes import Processes
from godwit.runtime.settings import NetworkSettings, network_of

TREE, CLUSTERS = "tree", "clusters"
#: Of clusters over the tree, at least.
RATE_BAR = 0.8
LINKS_BAR = 2
HANDLED = 'godwit_messages_handled_total{kind="Publication"}'
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
WAIT_S = 120.0


@dataclass(slots=True)
class Slice:
    published: int
    handled: int
    busy_s: float
    """Processor time of all brokers together."""


@dataclass(slots=True)
class LiveNetwork:
    """One of the networks, its clients, and what was measured."""

    running: Processes
    publishers: list[Client]
    received: Counter[int] = field(default_factory=Counter)
    """How many subscribers got each record, by its number."""
    hops: Counter[int] = field(default_factory=Counter)
    """Deliveries by the links between the brokers of publisher and subscriber."""
    delays_s: list[list[float]] = field(default_factory=list)
    """Of each turn."""
    sent_s: dict[int, float] = field(default_factory=dict)
    """When records were published whose delay is measured."""
    slices: list[Slice] = field(default_factory=list)

    @property
    def brokers(self) -> list[str]:
        return [broker.id for broker in self.running.network.broker]

    def busy_s(self) -> float:
        return sum(_busy_s(self.running.pid(broker)) for broker in self.brokers)

    async def handled(self) -> int:
        return sum([await _handled(self.running.http(broker)) for broker in self.brokers])

    def on_record(self, number: int) -> None:
        self.received[number] += 1
        if number in self.sent_s:
            self.delays_s[-1].append(time.monotonic() - self.sent_s[number])


def _busy_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


async def _handled(url: str) -> int:
    text = await asyncio.to_thread(lambda: urlopen(f"{url}/metrics").read().decode())  # noqa: S310
    lines = (line for line in text.splitlines() if line.startswith(HANDLED))
    return sum(int(float(line.split()[-1])) for line in lines)


@contextlib.asynccontextmanager
async def live(settings: NetworkSettings, work: ForwardingWorkload) -> AsyncIterator[LiveNetwork]:
    async with contextlib.AsyncExitStack() as stack:
        running = await stack.enter_async_context(Processes(settings, log_level="error"))
        brokers = [broker.id for broker in running.network.broker]
        network = LiveNetwork(running, [])
        announced = " and ".join(f"{name} is present" for name in work.records[0])
        for number, broker in enumerate(brokers):
            subscriber = await stack.enter_async_context(connect(running.url(broker)))
            events = await stack.enter_async_context(
                subscriber.subscribe(*work.filters[number :: len(brokers)])
            )
            await events.in_effect()

            async def take(events: Events = events) -> None:
                async for event in events:
                    network.on_record(int(event.content["number"]))
                    network.hops[event.hops] += 1

            task = asyncio.create_task(take())
            stack.callback(task.cancel)
        for broker in brokers:
            publisher = await stack.enter_async_context(connect(running.url(broker)))
            await publisher.advertise(announced)
            network.publishers.append(publisher)
        yield network


def expected(work: ForwardingWorkload, brokers: int) -> list[int]:
    """How many subscribers each record has to reach: filters are dealt in turn."""
    return [len({number % brokers for number in matches}) for matches in work.matches]


async def forward(network: LiveNetwork, work: ForwardingWorkload, numbers: Sequence[int]) -> None:
    """Publish these as fast as they are taken, and wait until all are acknowledged end to end."""
    handled, busy_s = await network.handled(), network.busy_s()
    count = len(network.publishers)

    async def publish(publisher: Client, mine: Sequence[int]) -> None:
        for number in mine:
            await publisher.publish(work.records[number])
        await publisher.flush()

    async with asyncio.TaskGroup() as group:
        for place, publisher in enumerate(network.publishers):
            group.create_task(publish(publisher, numbers[place::count]))
    network.slices.append(
        Slice(len(numbers), await network.handled() - handled, network.busy_s() - busy_s)
    )


async def pace(
    network: LiveNetwork, work: ForwardingWorkload, numbers: Sequence[int], per_s: float
) -> None:
    """Publish these at a steady rate, and measure how long they take."""
    network.delays_s.append([])
    start_s = time.monotonic()
    for turn, number in enumerate(numbers):
        await asyncio.sleep(max(0.0, start_s + turn / per_s - time.monotonic()))
        network.sent_s[number] = time.monotonic()
        await network.publishers[turn % len(network.publishers)].publish(work.records[number])
    for publisher in network.publishers:
        await publisher.flush()


async def check(network: LiveNetwork, due: Sequence[int], numbers: Sequence[int]) -> None:
    """Each record must have reached as many subscribers as it has to."""
    async with asyncio.timeout(WAIT_S):
        while any(network.received[number] < due[number] for number in numbers):  # noqa: ASYNC110
            await asyncio.sleep(0.05)  # Deliveries are counted elsewhere.
    wrong = [number for number in numbers if network.received[number] != due[number]]
    if wrong:
        raise SystemExit(f"{len(wrong)} records reached more subscribers than they should")


async def links_max(settings: NetworkSettings, work: ForwardingWorkload, count: int) -> int:
    """The longest way of a delivery, from a trace."""
    with tempfile.TemporaryDirectory(prefix="godwit-") as folder:
        trace = msgspec.structs.replace(settings.trace, folder=folder)
        traced = msgspec.structs.replace(settings, trace=trace)
        async with live(traced, work) as network:
            due, numbers = expected(work, len(network.brokers)), range(count)
            await forward(network, work, numbers)
            await check(network, due, numbers)
        return _hops_max(Path(folder))


def _hops_max(folder: Path) -> int:
    files = [str(each) for each in folder.rglob("*.parquet") if "delivered" in str(each)]
    hops = pyarrow.dataset.dataset(files).to_table(columns=["hops"])
    return int(max(hops["hops"].to_pylist()))


async def measure(arguments: argparse.Namespace, console: Console) -> bool:
    brokers, rounds = arguments.brokers, arguments.rounds
    per_round, paced = arguments.records, round(arguments.per_s * arguments.paced_s)
    work = stock_quotes(filters=arguments.filters, records=rounds * (per_round + paced))
    due = expected(work, brokers)
    networks = {
        TREE: network_of(balanced_tree(brokers, fanout=2), http_port=0),
        CLUSTERS: network_of(chain(brokers), clusters=arguments.clusters, http_port=0),
    }
    links = {
        kind: await links_max(settings, work, min(per_round, 500))
        for kind, settings in networks.items()
    }
    async with live(networks[TREE], work) as tree, live(networks[CLUSTERS], work) as clusters:
        both = [tree, clusters]
        for turn in range(rounds):
            first = turn * (per_round + paced)
            numbers = range(first, first + per_round)
            for network in both if turn % 2 else both[::-1]:
                await forward(network, work, numbers)
                await check(network, due, numbers)
            numbers = range(first + per_round, first + per_round + paced)
            for network in both if turn % 2 else both[::-1]:
                await pace(network, work, numbers, arguments.per_s)
                await check(network, due, numbers)
        return _report(tree, clusters, links, console)


def _report(
    tree: LiveNetwork, clusters: LiveNetwork, links: dict[str, int], console: Console
) -> bool:
    load = os.getloadavg()[0]
    console.print(f"{len(tree.brokers)} brokers, load average {load:.1f}")
    for kind, network in ((TREE, tree), (CLUSTERS, clusters)):
        handled = sum(each.handled for each in network.slices)
        published = sum(each.published for each in network.slices)
        busy_s = sum(each.busy_s for each in network.slices)
        p50, p99 = (1e3 * median(quantile(d, q) for d in network.delays_s) for q in (0.5, 0.99))
        console.print(
            f"{kind}: {handled / busy_s:,.0f} publications forwarded in a second of a broker's"
            f" processor time, {handled / published:.2f} for each published;"
            f" {published / busy_s:,.0f} published; delay p50 {p50:.2f} ms, p99 {p99:.2f} ms of"
            f" {sum(map(len, network.delays_s)):,}; {links[kind]} links at most"
        )
    turns = list(zip(tree.slices, clusters.slices, strict=True))
    rate = median((b.handled / b.busy_s) / (a.handled / a.busy_s) for a, b in turns)
    useful = median((b.published / b.busy_s) / (a.published / a.busy_s) for a, b in turns)
    delays = zip(tree.delays_s, clusters.delays_s, strict=True)
    tail = median(quantile(b, 0.99) / quantile(a, 0.99) for a, b in delays)
    console.print(
        f"clusters over tree, median of {len(turns)} turns: forwarded {rate:.2f} (bar"
        f" {RATE_BAR}), published {useful:.2f}; p99 {tail:.2f} (bar: below 1)"
    )
    return rate >= RATE_BAR and tail < 1.0 and links[CLUSTERS] <= LINKS_BAR


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--brokers", type=int, default=12)
    parser.add_argument("--clusters", type=int, default=3)
    parser.add_argument("--filters", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=int, default=3_000, help="as fast as they are taken")
    parser.add_argument("--per-s", type=float, default=100.0, help="for delays, in all")
    parser.add_argument("--paced-s", type=float, default=10.0)
    arguments = parser.parse_args()
    return 0 if uvloop.run(measure(arguments, Console(width=100))) else 1


if __name__ == "__main__":
    sys.exit(main())
