"""The cost of a move: clients move in a busy network, and every delivery is checked.

    python -m benchmarks.moving                         # 200 subscribers' and 50 publishers' moves
    python -m benchmarks.moving --kills 20              # ... while brokers are killed and restarted

Broker processes, publishers at a steady rate, subscribers with different filters; all clients and
the oracle are in this process.  It reports how long publications waited in a moving publisher, by
the length of the path between its brokers, and how long moves took.  With `--kills` moves may fail;
there are at least as many successful moves as requested, and more while brokers are killed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from random import Random

import uvloop
from rich.console import Console
from rich.table import Table

from godwit.client import Client, Moved, connect
from godwit.content.filters import Filter
from godwit.errors import StayedError
from godwit.overlay.topology import Topology, balanced_tree
from godwit.runtime.processes import Processes
from godwit.runtime.settings import network_of
from godwit.simulation.oracle import Oracle
from godwit.testing.witness import WitnessedClient, wait_for_deliveries

ADVERTISED = "class = '{name}' and n is present and third is present"
WANTED = ("third = 0", "n < 50", "class = 'p0'", "n >= 30 and third = 1", "n is present")
#: Longer than any delivery takes.
SETTLE_S = 60.0
PUBLISHERS, SUBSCRIBERS = 5, 10
#: Between two moves of a client.
PAUSE_S_MAX = 0.5
#: Between two kills.
KILL_PAUSE_S_MAX = 3.0


@dataclass(slots=True)
class Travelled:
    """The result."""

    oracle: Oracle
    topology: Topology
    subscribers: list[Moved] = field(default_factory=list)
    publishers: list[Moved] = field(default_factory=list)
    stayed: list[str] = field(default_factory=list)
    kills: int = 0
    restarts: int = 0

    def hops(self, moved: Moved) -> int:
        """Links between the two brokers."""
        return self.topology.distances(moved.source)[moved.target]


async def travel(
    running: Processes,
    topology: Topology,
    *,
    subscriber_moves: int,
    publisher_moves: int,
    per_s: float = 1_000.0,
    seed: int = 1,
    kills: int = 0,
    url: Callable[[str], str] | None = None,
    when_quiet: Callable[[list[Client]], Awaitable[None]] | None = None,
) -> Travelled:
    """Move clients while they publish, `per_s` in all; check every delivery."""
    random, travelled = Random(seed), Travelled(Oracle(settle_s=SETTLE_S), topology)
    where = url or running.url
    async with _cast(topology, travelled.oracle, random, where) as (publishers, subscribers):
        talking = [
            asyncio.create_task(_talk(publisher, per_s / len(publishers), random))
            for publisher in publishers
        ]
        stages = [
            (publishers, publisher_moves, travelled.publishers),
            (subscribers, subscriber_moves, travelled.subscribers),
        ]
        killing = asyncio.create_task(_kill(running, kills, topology, random, travelled))

        def is_over(done: list[Moved], moves: int) -> bool:
            return len(done) >= moves and killing.done()

        async def walk(walker: WitnessedClient, moves: int, done: list[Moved]) -> None:
            while not is_over(done, moves):
                await _walk(walker, topology, where, random, done, travelled.stayed)

        await asyncio.gather(
            *(walk(each, moves, done) for walkers, moves, done in stages for each in walkers)
        )
        await killing
        for task in talking:
            task.cancel()
        await asyncio.gather(*talking, return_exceptions=True)
        clients = [each.client for each in (*publishers, *subscribers)]
        await wait_for_deliveries(travelled.oracle, *clients, within_s=SETTLE_S)
        if when_quiet is not None:
            await when_quiet(clients)
        travelled.oracle.finish(time.time())
        travelled.restarts = sum(client.restarts for client in clients)
    return travelled


@contextlib.asynccontextmanager
async def _cast(
    topology: Topology, oracle: Oracle, random: Random, where: Callable[[str], str]
) -> AsyncIterator[tuple[list[WitnessedClient], list[WitnessedClient]]]:
    """Publishers and subscribers."""
    async with contextlib.AsyncExitStack() as stack:

        async def enter(name: str) -> WitnessedClient:
            client = connect(where(random.choice(topology.brokers)), name=name)
            return await stack.enter_async_context(WitnessedClient(client, oracle))

        publishers = [await enter(f"p{number}") for number in range(PUBLISHERS)]
        for each in publishers:
            await each.advertise(Filter.parse(ADVERTISED.format(name=each.name)))
        await publishers[-1].subscribe(
            Filter.parse(WANTED[0])
        )  # Publisher and subscriber in one client.
        subscribers = [await enter(f"s{number}") for number in range(SUBSCRIBERS)]
        for number, each in enumerate(subscribers):
            await each.subscribe(Filter.parse(WANTED[number % len(WANTED)]))
        yield publishers, subscribers


async def _talk(publisher: WitnessedClient, per_s: float, random: Random) -> None:
    loop = asyncio.get_running_loop()
    next_s = loop.time()
    while True:
        next_s += random.expovariate(per_s)
        await asyncio.sleep(next_s - loop.time())
        number = random.randrange(100)
        await publisher.publish({"class": publisher.name, "n": number, "third": number % 3})


async def _kill(
    running: Processes, kills: int, topology: Topology, random: Random, travelled: Travelled
) -> None:
    """Kill brokers one by one, and restart each soon."""
    for _ in range(kills):
        await asyncio.sleep(random.uniform(0.5, KILL_PAUSE_S_MAX))
        broker = random.choice(topology.brokers)
        await running.kill(broker)
        await asyncio.sleep(random.uniform(0.0, 0.5))
        await running.start(broker)
        travelled.kills += 1


async def _walk(
    walker: WitnessedClient,
    topology: Topology,
    where: Callable[[str], str],
    random: Random,
    done: list[Moved],
    stayed: list[str],
) -> None:
    await asyncio.sleep(random.uniform(0.0, PAUSE_S_MAX))
    elsewhere = [b for b in topology.brokers if b != walker.client.session.broker]
    try:
        done.append(await walker.client.move(where(random.choice(elsewhere))))
    except StayedError as error:
        stayed.append(str(error))


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def as_table(travelled: Travelled) -> Table:
    table = Table(title="Moves")
    headings = (
        "who", "hops", "moves", "took p50, ms", "p99", "pause p50, ms", "p99", "a hop p50", "p99"
    )  # fmt: skip
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "who" else "right")
    for who, moves in (("publisher", travelled.publishers), ("subscriber", travelled.subscribers)):
        by_hops: dict[int, list[Moved]] = defaultdict(list)
        for moved in moves:
            by_hops[travelled.hops(moved)].append(moved)
        rows = [*sorted(by_hops.items()), (0, moves)]
        for hops, those in rows:
            took = [1000 * moved.took_s for moved in those]
            pauses = [1000 * moved.pause_s for moved in those if moved.pause_s]
            each = [1000 * m.pause_s / travelled.hops(m) for m in those if m.pause_s]
            table.add_row(who, str(hops or "any"), str(len(those)), *_figures(took, pauses, each))
    return table


def _figures(*columns: list[float]) -> list[str]:
    return [
        f"{quantile(values, share):,.1f}" if values else ""
        for values in columns
        for share in (0.5, 0.99)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.moving", description=__doc__)
    parser.add_argument("--subscriber-moves", type=int, default=200)
    parser.add_argument("--publisher-moves", type=int, default=50)
    parser.add_argument("--per-s", type=float, default=1_000.0, help="publications in a second")
    parser.add_argument("--kills", type=int, default=0, help="of brokers, which are restarted")
    parser.add_argument("--brokers", type=int, default=7)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    topology = balanced_tree(arguments.brokers, fanout=2)

    async def measured() -> Travelled:
        async with Processes(network_of(topology)) as running:
            return await travel(
                running,
                topology,
                subscriber_moves=arguments.subscriber_moves,
                publisher_moves=arguments.publisher_moves,
                per_s=arguments.per_s,
                seed=arguments.seed,
                kills=arguments.kills,
            )

    travelled = uvloop.run(measured())
    console, oracle = Console(width=120), travelled.oracle
    console.print(as_table(travelled))
    console.print(
        f"{oracle.publications:,} publications, {oracle.deliveries:,} deliveries,"
        f" {oracle.violation_count} violations, {len(travelled.stayed)} stayed,"
        f" {travelled.restarts} restarts of sessions, {travelled.kills} kills"
    )
    for line in (*map(str, oracle.violations[:5]), *travelled.stayed[:5]):
        console.print(f"  {line}")
    return 0 if oracle.is_satisfied and (arguments.kills or not travelled.stayed) else 1


if __name__ == "__main__":
    sys.exit(main())
