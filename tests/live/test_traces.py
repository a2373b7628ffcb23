"""Three traced broker processes, and what the metrics say of them against what clients saw."""

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
from tests.live.people import Listener, Speaker, listener, speaker
from tests.live.watching import until
from tests.spark import spark
from tests.trace.test_writer import files, rows

from godwit.lab.metrics import STAGES
from godwit.lab.reading import read_trace
from godwit.lab.stages import Span
from godwit.network import NetworkSettings, Processes, TraceSettings, network_of
from godwit.overlay.topology import chain
from godwit.trace.schema import TABLES

__all__ = ["spark"]


def traced(folder: Path, **settings: float) -> NetworkSettings:
    trace = msgspec.convert({"folder": str(folder), **settings}, TraceSettings)
    return msgspec.structs.replace(network_of(chain(3)), trace=trace)


@contextlib.asynccontextmanager
async def people(
    running: Processes, *listeners: str
) -> AsyncIterator[tuple[list[Speaker], list[Listener]]]:
    """Two speakers at the ends, and a listener at each of these brokers."""
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        speakers = [await enter(speaker(running.url(at), f"speaker-{at}")) for at in ("B1", "B3")]
        heard = [await enter(listener(running.url(at), f"listener-{at}")) for at in listeners]
        yield speakers, heard


async def talk(speakers: list[Speaker], listeners: list[Listener], *, numbers: int) -> None:
    for person in speakers:
        await person.say(numbers)
    for person in speakers:
        for each in listeners:
            await each.has_heard(person)


def test_metrics_of_a_live_network_are_what_clients_saw(
    spark: SparkSession, tmp_path: Path
) -> None:
    async def scenario() -> dict[str, int]:
        async with Processes(traced(tmp_path, gauges_every_s=0.5, rotate_rows=100)) as running:
            async with people(running, "B2", "B3") as (speakers, listeners):
                await talk(speakers, listeners, numbers=150)
                await asyncio.sleep(1.0)  # So that gauges are read more than once.
            assert set((await running.stop()).values()) == {0}
        return {
            person.client.name: sum(len(numbers) for numbers in person.heard.values())
            for person in listeners
        }

    start_s = time.time()
    heard = run(scenario(), within_s=60)
    assert heard == {"listener-B2": 300, "listener-B3": 300}
    over = Span(start_s, time.time(), bucket_s=0.7)
    loaded, trace = plain.read(tmp_path), read_trace(spark, tmp_path)
    found = {
        name: [r.asDict() for r in stage(trace, over).collect()] for name, stage in STAGES.items()
    }
    for name, rows_found in found.items():
        plain.assert_same(rows_found, plain.PLAIN[name](loaded, over))

    deliveries = {row["client"]: row["deliveries"] for row in found["deliveries_per_subscriber"]}
    assert deliveries == heard
    # From B1 to B2 and B3 it is one link and two; from B3 to B2 and B3 one and none.
    hops = {row["hops"]: row["deliveries"] for row in found["hop_histogram"]}
    assert hops == {0: 150, 1: 300, 2: 150}
    published = {row["publisher"]: row["publications"] for row in found["publisher_rates"]}
    assert published == {"speaker-B1": 150, "speaker-B3": 150}
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
            async with people(running, "B2") as (speakers, listeners):
                await talk(speakers, listeners, numbers=50)

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
