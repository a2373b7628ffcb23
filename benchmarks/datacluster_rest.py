"""What a data cluster costs while nothing arrives.

    python -m benchmarks.datacluster_rest [--datasets 100] [--channels 200] [--seconds 60]

Datasets are created, and channels over them, half of them periodic; every tenth dataset gets a
record.  Then nothing happens until all queries sleep.  Printed are the processor time of all
processes of the data cluster (Python, Java, Spark's Python workers) over some time, as a share of
one core, and their memory.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time

import msgspec
from rich.console import Console

from benchmarks.usage import processes_mebibytes, processor_s
from godwit.api import datacluster_api as api
from godwit.http.http_client import HttpClient
from godwit.runtime.processes import free_port
from godwit.runtime.service import Service

CHANNEL = """CREATE CHANNEL C{0}(name STRING) {1} AS
    SELECT name, value FROM NEW D{2} WHERE name = :name"""
#: A query sleeps after a minute.
ASLEEP_S = 75.0


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", type=int, default=100)
    parser.add_argument("--channels", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    given, console = parser.parse_args(), Console()
    with tempfile.TemporaryDirectory(prefix="godwit-") as folder:
        options = ("--listen", f"127.0.0.1:{free_port()}", "--folder", folder)
        async with (
            Service("datacluster", *options) as service,
            HttpClient(service.url, answer_s=300.0) as caller,
        ):
            await fill(caller, given.datasets, given.channels)
            console.print(f"{given.datasets} datasets, {given.channels} channels")
            await asyncio.sleep(ASLEEP_S)
            before_s, begun_s = processor_s(service.pid), time.monotonic()
            await asyncio.sleep(given.seconds)
            share = (processor_s(service.pid) - before_s) / (time.monotonic() - begun_s)
            console.print(
                f"{share:.1%} of a core, {processes_mebibytes(service.pid):,.0f} MiB in all"
            )


async def fill(caller: HttpClient, datasets: int, channels: int) -> None:
    for number in range(datasets):
        text = f"CREATE DATASET D{number} (name STRING, value DOUBLE)"
        await caller.call(api.STATEMENT, api.Statement(text))
    for number in range(channels):
        period = "EVERY 10 SECONDS" if number % 2 else "CONTINUOUS"
        text = CHANNEL.format(number, period, number % datasets)
        await caller.call(api.STATEMENT, api.Statement(text))
    record = msgspec.Raw(msgspec.json.encode({"name": "a", "value": 1.0}))
    for number in range(0, datasets, 10):  # A query for each at once would need as many processes.
        await caller.call(api.RECORDS, api.Records(f"D{number}", [record]))


if __name__ == "__main__":
    asyncio.run(main())
