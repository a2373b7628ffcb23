"""Three traced broker processes: their metrics against what clients received."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
from pyspark.sql import SparkSession
from tests.asynchronous import run
from tests.lab import plain
from tests.live.tick_clients import TickPublisher, TickSubscriber, tick_publisher, tick_subscriber
from tests.live.watching import until
from tests.spark import spark
from tests.trace.test_writer import files, rows

from godwit.lab.metrics import STAGES
from godwit.lab.metrics.reading import read_trace
from godwit.lab.metrics.stages import Span
from godwit.overlay.topology import chain
from godwit.runtime import NetworkSettings, Processes, TraceSettings, network_of
from godwit.trace.schema import TABLES

__all__ = ["spark"]


def traced(folder: Path, **settings: float) -> NetworkSettings:
    trace = msgspec.convert({"folder": str(folder), **settings}, TraceSettings)
    return msgspec.structs.replace(network_of(chain(3)), trace=trace)


@contextlib.asynccontextmanager
async def people(
    running: Processes, *subscribers_at: str
) -> AsyncIterator[tuple[list[TickPublisher], list[TickSubscriber]]]:
    """A publisher at each end, and a subscriber at each of these brokers."""
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        publishers = [
            await enter(tick_publisher(running.url(at), f"publisher-{at}")) for at in ("B1", "B3")
        ]
        received = [
            await enter(tick_subscriber(running.url(at), f"subscriber-{at}"))
            for at in subscribers_at
        ]
        yield publishers, received


async def talk(
    publishers: list[TickPublisher], subscribers_at: list[TickSubscriber], *, numbers: int
) -> None:
    for person in publishers:
        await person.publish(numbers)
    for person in publishers:
        for each in subscribers_at:
            await each.has_received(person)


def test_metrics_of_a_live_network_are_what_clients_saw(
    spark: SparkSession, tmp_path: Path
) -> None:
    async def scenario() -> dict[str, int]:
        async with Processes(traced(tmp_path, gauges_every_s=0.5, rotate_rows=100)) as running:
            async with people(running, "B2", "B3") as (publishers, subscribers_at):
                await talk(publishers, subscribers_at, numbers=150)
                await asyncio.sleep(1.0)  # So that gauges are read more than once.
            assert set((await running.stop()).values()) == {0}
        return {
            person.client.name: sum(len(numbers) for numbers in person.received.values())
            for person in subscribers_at
        }

    start_s = time.time()
    received = run(scenario(), within_s=60)
    assert received == {"subscriber-B2": 300, "subscriber-B3": 300}
    over = Span(start_s, time.time(), bucket_s=0.7)
    loaded, trace = plain.read(tmp_path), read_trace(spark, tmp_path)
    found = {
        name: [r.asDict() for r in stage(trace, over).collect()] for name, stage in STAGES.items()
    }
    for name, rows_found in found.items():
        plain.assert_same(rows_found, plain.PLAIN[name](loaded, over))

    deliveries = {row["client"]: row["deliveries"] for row in found["deliveries_per_subscriber"]}
    assert deliveries == received
    # From B1 to B2 and B3 it is one link and two; from B3 to B2 and B3 one and none.
    hops = {row["hops"]: row["deliveries"] for row in found["hop_histogram"]}
    assert hops == {0: 150, 1: 300, 2: 150}
    published = {row["publisher"]: row["publications"] for row in found["publisher_rates"]}
    assert published == {"publisher-B1": 150, "publisher-B3": 150}
    (forwarding,) = found["forwarding"]
    assert (forwarding["delivered"], forwarding["pure_forwards"]) == (600, 0)
    (tables,) = found["routing_tables"]
    assert tables["brokers"] == 3
    for profile in found["subscriber_profiles"]:
        assert profile["received"] == 150


def test_a_broker_that_is_killed_leaves_whole_files(tmp_path: Path) -> None:
    async def scenario() -> None:
        network = traced(tmp_path, rotate_s=0.3)
        async with Processes(network) as running:
            async with people(running, "B2") as (publishers, subscribers_at):
                await talk(publishers, subscribers_at, numbers=50)

                async def is_shown() -> bool:
                    return len(rows(tmp_path / "delivered")) == 100

                await until(is_shown)
                await running.kill("B2")
            await running.stop()

    run(scenario(), within_s=60)
    brokers = Counter(row["broker"] for row in rows(tmp_path / "handled"))
    assert set(brokers) == {"B1", "B2", "B3"}
    for table in TABLES:
        starts = {name.partition("-")[0] for name in files(tmp_path / table) if name[0] != "_"}
        assert {"B1", "B3"} <= starts <= {"B1", "B2", "B3"}
