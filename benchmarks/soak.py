"""Soak: steady publications, connections that break at random, every delivery checked.

    python -m benchmarks.soak --minutes 5

First it measures the highest rate of a publisher through one broker process to a few subscribers,
with all clients and the oracle in this process; then it runs at 80% of that rate.  It shows losses,
duplicates and growing memory.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import Any

import uvloop
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from rich.table import Table

from godwit.client import connect
from godwit.content.filters import Filter
from godwit.overlay.topology import Topology, chain
from godwit.runtime.processes import Processes
from godwit.runtime.settings import network_of
from godwit.simulation.oracle import Oracle
from godwit.testing.witness import WitnessedClient, wait_for_deliveries

ADVERTISED = Filter.parse("class = 'SOAK' and n is present and third is present")
WANTED = ("n < 50", "n >= 50 and third = 0", "third = 1", "class = 'SOAK'")
CAPACITY_S = 10.0
SHARE_OF_CAPACITY = 0.8
#: Longer than any delivery takes, also to a client that was disconnected.
SETTLE_S = 30.0
TICK_S = 0.005


@dataclass(frozen=True, slots=True)
class Sample:
    """Figures at one moment."""

    at_s: float
    published: int
    delivered: int
    broken: int
    """Connections broken so far."""

    memory_bytes: int
    """Resident memory of all brokers."""


@dataclass(slots=True)
class Soaked:
    """The result."""

    oracle: Oracle
    samples: list[Sample] = field(default_factory=list)
    seconds: float = 0.0
    duplicates: int = 0
    """Deliveries that clients recognised as duplicates and dropped."""

    restarts: int = 0
    """Sessions that a broker had lost."""

    @property
    def rate_per_s(self) -> float:
        return self.oracle.publications / self.seconds

    @property
    def growth_bytes(self) -> int:
        """From the second sample, after warming up, to the last."""
        return self.samples[-1].memory_bytes - self.samples[1].memory_bytes


async def soak(
    topology: Topology,
    *,
    seconds: float,
    per_s: float,
    breaks_per_s: float = 0.0,
    sample_s: float = 60.0,
    seed: int = 1,
    on_sample: Callable[[Sample], None] = lambda _: None,
) -> Soaked:
    """Publish at a steady rate, break connections at random, check every delivery."""
    soaked = Soaked(Oracle(settle_s=SETTLE_S))
    async with _cast(topology, soaked.oracle) as (running, publisher, clients):
        breaker = _Breaker(clients, breaks_per_s, Random(seed))

        async def sample(at_s: float) -> None:
            oracle, memory = soaked.oracle, await asyncio.to_thread(_memory_bytes, running)
            figures = Sample(at_s, oracle.publications, oracle.deliveries, breaker.broken, memory)
            soaked.samples.append(figures)
            on_sample(figures)

        await sample(0.0)
        start_s = time.monotonic()
        async with asyncio.TaskGroup() as acting:
            breaking = acting.create_task(breaker.run())
            sampling = acting.create_task(_regularly(sample, sample_s))
            await _publish(publisher, seconds, per_s)
            breaking.cancel()
            sampling.cancel()
        await wait_for_deliveries(soaked.oracle, publisher.client, within_s=SETTLE_S)
        soaked.seconds = time.monotonic() - start_s
        await sample(soaked.seconds)
        soaked.oracle.finish(time.time())
        soaked.duplicates = sum(each.client.session.deliveries.duplicates for each in clients)
        soaked.restarts = sum(each.client.session.restarts for each in clients)
    return soaked


@contextlib.asynccontextmanager
async def _cast(
    topology: Topology, oracle: Oracle
) -> AsyncIterator[tuple[Processes, WitnessedClient, list[WitnessedClient]]]:
    """Brokers, the publisher, and all clients: the publisher and the subscribers."""
    async with contextlib.AsyncExitStack() as stack:
        running = await stack.enter_async_context(Processes(network_of(topology, http_port=0)))
        clients: list[WitnessedClient] = []
        for number in range(1 + len(WANTED)):
            broker = topology.brokers[number % len(topology.brokers)]
            client = WitnessedClient(connect(running.url(broker), name=f"c{number}"), oracle)
            clients.append(await stack.enter_async_context(client))
        publisher, *subscribers = clients
        await publisher.advertise(ADVERTISED)
        for subscriber, text in zip(subscribers, WANTED, strict=True):
            await subscriber.subscribe(Filter.parse(text))
        yield running, publisher, clients


async def _publish(publisher: WitnessedClient, seconds: float, per_s: float) -> None:
    start_s = time.monotonic()
    number = 0
    while (elapsed_s := time.monotonic() - start_s) < seconds:
        if number >= elapsed_s * per_s:
            await asyncio.sleep(TICK_S)
            continue
        await publisher.publish({"class": "SOAK", "n": number % 100, "third": number % 3})
        number += 1


async def _regularly(do: Callable[[float], Any], interval_s: float) -> None:
    start_s = time.monotonic()
    while True:
        await asyncio.sleep(interval_s)
        await do(time.monotonic() - start_s)


class _Breaker:
    """Breaks connections as a network does: without a goodbye, losing what is in flight."""

    def __init__(self, clients: list[WitnessedClient], per_s: float, random: Random) -> None:
        self.broken = 0
        self._clients = clients
        self._per_s = per_s
        self._random = random

    async def run(self) -> None:
        while self._per_s:
            await asyncio.sleep(self._random.expovariate(self._per_s))
            connection = self._random.choice(self._clients).client.broker_connection.connection
            if connection is not None and connection._transport is not None:  # noqa: SLF001
                connection._transport.abort()  # noqa: SLF001
                self.broken += 1


def _memory_bytes(running: Processes) -> int:
    total = 0
    for broker in running.network.broker:
        with urllib.request.urlopen(f"{running.http(broker.id)}/metrics") as answer:  # noqa: S310
            text = answer.read().decode()
        for family in text_string_to_metric_families(text):
            if family.name == "process_resident_memory_bytes":
                total += int(family.samples[0].value)
    return total


async def capacity(topology: Topology, seconds: float) -> float:
    """Publications per second at most."""
    return (await soak(topology, seconds=seconds, per_s=inf)).rate_per_s


def as_table(soaked: Soaked) -> Table:
    table = Table(title="Soak")
    headings = ("at, s", "published", "a second", "delivered", "a second", "broken", "memory, MB")
    for heading in headings:
        table.add_column(heading, justify="right")
    last = Sample(0.0, 0, 0, 0, 0)
    for each in soaked.samples:
        span_s = (each.at_s - last.at_s) or inf
        table.add_row(
            f"{each.at_s:,.0f}",
            f"{each.published:,}",
            f"{(each.published - last.published) / span_s:,.0f}",
            f"{each.delivered:,}",
            f"{(each.delivered - last.delivered) / span_s:,.0f}",
            f"{each.broken:,}",
            f"{each.memory_bytes / 1e6:,.1f}",
        )
        last = each
    return table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--breaks-per-s", type=float, default=0.5, help="connections broken")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    console = Console(width=100)
    topology = chain(1)
    most_per_s = uvloop.run(capacity(topology, CAPACITY_S))
    per_s = SHARE_OF_CAPACITY * most_per_s
    console.print(f"capacity {most_per_s:,.0f} a second; running at {per_s:,.0f} a second")
    soaked = uvloop.run(
        soak(
            topology,
            seconds=60 * arguments.minutes,
            per_s=per_s,
            breaks_per_s=arguments.breaks_per_s,
            seed=arguments.seed,
            on_sample=lambda s: console.print(f"{s.at_s:,.0f} s, {s.published:,}", style="dim"),
        )
    )
    console.print(as_table(soaked))
    verdicts = Counter(violation.verdict.value for violation in soaked.oracle.violations)
    console.print(
        f"rate {soaked.rate_per_s:,.0f} a second, violations {soaked.oracle.violation_count}"
        f" {dict(verdicts)}, duplicates dropped by clients {soaked.duplicates},"
        f" sessions lost {soaked.restarts}"
    )
    return 0 if soaked.oracle.is_satisfied else 1


if __name__ == "__main__":
    sys.exit(main())
