"""Latency of a record from its publication to the subscriber of a continuous channel.

    python -m benchmarks.channel_latency [--seconds 30] [--per-s 400]

A broker process, a data cluster process and a publisher.  One subscriber uses a filter, which is
the reference, the other a channel over the dataset that is fed with the same publications.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time

import msgspec
import uvloop
from rich.console import Console
from rich.table import Table

from godwit.api import datacluster_api as api
from godwit.client import ChannelEvents, Events, connect
from godwit.content.values import Value
from godwit.http.http_client import HttpClient
from godwit.overlay.topology import chain
from godwit.runtime.processes import Processes, free_port
from godwit.runtime.service import Service
from godwit.runtime.settings import network_of

ADVERTISED = "class = 'R' and n is a number and sent_s is a number and text is a string"
STATEMENTS = (
    "CREATE DATASET Records (n BIGINT, sent_s DOUBLE, text STRING)",
    f'CREATE FEED records FROM FILTER "{ADVERTISED}" INTO Records',
    """CREATE CHANNEL All(least BIGINT, most BIGINT) CONTINUOUS AS
    SELECT n, sent_s FROM NEW Records WHERE n BETWEEN :least AND :most""",
)
TEXT = "x" * 400
#: Until Java has compiled most of the code: after 40 seconds all still takes twice as long.
WARM_UP_S = 150.0


async def measure(seconds: float, per_s: float) -> dict[str, list[float]]:
    """Delays in seconds, by kind of subscription."""
    with tempfile.TemporaryDirectory(prefix="godwit-") as folder:
        listen = f"127.0.0.1:{free_port()}"
        network = msgspec.structs.replace(network_of(chain(1)), datacluster=f"http://{listen}")
        async with Processes(network) as brokers:
            options = ("--listen", listen, "--folder", folder, "--broker", brokers.url("B1"))
            async with (
                Service("datacluster", *options) as service,
                HttpClient(service.url, answer_s=120.0) as caller,
            ):
                for text in STATEMENTS:
                    await caller.call(api.STATEMENT, api.Statement(text))
                return await _measure(brokers.url("B1"), seconds, per_s)


async def _measure(url: str, seconds: float, per_s: float) -> dict[str, list[float]]:
    delays: dict[str, list[float]] = {"filter": [], "channel": []}

    async def read(events: Events | ChannelEvents, into: list[float]) -> None:
        async for event in events:
            sent_s = event.content["sent_s"]
            assert isinstance(sent_s, float)
            into.append(time.time() - sent_s)

    async with (
        connect(url) as publisher,
        connect(url) as subscriber,
        subscriber.subscribe("class = 'R'") as filtered,
        subscriber.subscribe_channel("All", least=0, most=10**12) as channel,
    ):
        await publisher.advertise(ADVERTISED)
        await filtered.in_effect()
        await channel.in_effect()
        readers = [
            asyncio.create_task(read(filtered, delays["filter"])),
            asyncio.create_task(read(channel, delays["channel"])),
        ]
        start_s, n, first = time.monotonic(), 0, 0
        while (elapsed_s := time.monotonic() - start_s) < WARM_UP_S + seconds:
            if elapsed_s < WARM_UP_S:
                first = n
            record: dict[str, Value] = {"class": "R", "n": n, "sent_s": time.time(), "text": TEXT}
            await publisher.publish(record)
            n += 1
            await asyncio.sleep(max(0.0, start_s + n / per_s - time.monotonic()))
        while min(map(len, delays.values())) < n:  # noqa: ASYNC110  Readers do not signal it.
            await asyncio.sleep(0.1)
        for reader in readers:
            reader.cancel()
    return {kind: sorted(all_of[first:]) for kind, all_of in delays.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--per-s", type=float, default=400.0)
    given = parser.parse_args()
    print(f"{WARM_UP_S:.0f} seconds to warm up, {given.seconds:.0f} to measure ...", flush=True)
    delays = uvloop.run(measure(given.seconds, given.per_s))
    table = Table("subscription", "records", "p50, ms", "p99, ms", "largest, ms")
    for kind, found in delays.items():
        at = [found[int(share * (len(found) - 1))] * 1000 for share in (0.5, 0.99, 1.0)]
        table.add_row(kind, f"{len(found):,}", *(f"{ms:,.1f}" for ms in at))
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
