"""What open pages of the dashboard cost the brokers behind it.

    python -m benchmarks.dashboard_pages [--pages 10] [--pairs 8] [--seconds 4]
    python -m benchmarks.dashboard_pages --soak 1800

A chain of three broker processes forwards 2,000 publications per second, in bursts.  Slices with
open pages and slices without take turns.  The ratio is that of publications that all brokers
forward in a second of their processor time, the median over pairs of slices: the machine may be
busy with other things.  The bar is 0.97.  Bytes are those that one page was sent.

--soak: memory of the dashboard with open pages after so many rounds, which follow each other at
once; 1,800 are an hour.  Figures are kept for 450 rounds: memory grows until then, and no more.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import resource
import statistics
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import uvloop
from rich.console import Console

from benchmarks.usage import processor_s
from godwit.client import Events, connect
from godwit.overlay.topology import chain
from godwit.runtime.processes import Processes
from godwit.runtime.settings import network_of
from godwit.web.dashboard import Dashboard
from godwit.web.directory import Directory
from godwit.web.figure_series import POINTS

BROKERS = ("B1", "B2", "B3")
BAR = 0.97
#: Publications per second, in bursts: a read of a broker has as many in every slice.
RATE_PER_S, BURST = 2_000, 50


class Pages:
    """Open pages, which read what they are sent."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.bytes = 0

    @contextlib.asynccontextmanager
    async def open(self, count: int) -> AsyncIterator[None]:
        reading = [asyncio.create_task(self._read()) for _ in range(count)]
        try:
            yield
        finally:
            for task in reading:
                task.cancel()
            await asyncio.gather(*reading, return_exceptions=True)

    async def _read(self) -> None:
        async with (
            httpx.AsyncClient(trust_env=False, timeout=None) as client,  # noqa: S113
            client.stream("GET", f"{self._url}/api/stream") as stream,
        ):
            async for chunk in stream.aiter_bytes():
                self.bytes += len(chunk)


class Load:
    """Publications, and how many have arrived."""

    def __init__(self) -> None:
        self.received = 0

    async def publish(self, url: str) -> None:
        async with connect(url, name="publisher") as client:
            await client.advertise("class = 'N' and n is a number")
            number = 0
            while True:
                for _ in range(BURST):
                    number += 1
                    await client.publish({"class": "N", "n": number})
                await asyncio.sleep(BURST / RATE_PER_S)

    async def receive(self, events: Events) -> None:
        async for _ in events:
            self.received += 1


async def measured(pages: int, pairs: int, seconds: float) -> tuple[list[float], float]:
    """The ratio of each pair, and the bytes per second that a page was sent."""
    load = Load()
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        running = await enter(Processes(network_of(chain(len(BROKERS)), http_port=0)))
        directory = Directory(brokers=lambda: {name: running.http(name) for name in BROKERS})
        url = await enter(Dashboard(directory).serve("127.0.0.1:0"))
        subscriber = await enter(connect(running.url("B3"), name="subscriber"))
        events = await enter(subscriber.subscribe("class = 'N'"))
        await events.in_effect()
        tasks = [
            asyncio.create_task(load.publish(running.url("B1"))),
            asyncio.create_task(load.receive(events)),
        ]
        viewers = Pages(url)

        async def slice_of(count: int) -> float:
            async with viewers.open(count):
                await asyncio.sleep(1.0)
                before, used_s = load.received, sum(processor_s(running.pid(b)) for b in BROKERS)
                await asyncio.sleep(seconds)
                used_s = sum(processor_s(running.pid(b)) for b in BROKERS) - used_s
                return (load.received - before) / used_s

        await asyncio.sleep(2.0)
        ratios: list[float] = []
        began_s = time.monotonic()
        for number in range(pairs):
            counts = (0, pages) if number % 2 else (pages, 0)
            found = {count: await slice_of(count) for count in counts}
            ratios.append(found[pages] / found[0])
        open_s = pages * (time.monotonic() - began_s) / 2
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return ratios, viewers.bytes / open_s


SOAK_GROWTH_MIB = 8.0


async def soaked(pages: int, rounds: int) -> list[tuple[int, float]]:
    """Rounds, and the memory of this process after them in MiB."""
    found = []
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        running = await enter(Processes(network_of(chain(len(BROKERS)), http_port=0)))
        directory = Directory(brokers=lambda: {name: running.http(name) for name in BROKERS})
        dashboard = Dashboard(directory, period_s=0.0)
        url = await enter(dashboard.serve("127.0.0.1:0"))
        await enter(Pages(url).open(pages))
        step = max(1, rounds // 12)
        for number in range(1, rounds + 1):
            await dashboard.gatherer.gather()
            if number % step == 0:
                found.append((number, mebibytes()))
                print(f"{number} rounds: {found[-1][1]:.1f} MiB", flush=True)
    return found


def mebibytes() -> float:
    """Resident memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def soak(pages: int, rounds: int) -> bool:
    found = uvloop.run(soaked(pages, rounds))
    full = [memory for number, memory in found if number >= POINTS]
    growth = max(full, default=0.0) - full[0] if full else 0.0
    print(f"growth after {POINTS} rounds: {growth:.1f} MiB (bar {SOAK_GROWTH_MIB:g})")
    return bool(full) and growth <= SOAK_GROWTH_MIB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=10)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--soak", type=int, default=0, metavar="ROUNDS")
    given = parser.parse_args()
    if given.soak:
        sys.exit(not soak(given.pages, given.soak))
    ratios, page_bytes_s = uvloop.run(measured(given.pages, given.pairs, given.seconds))
    low, median, high = statistics.quantiles(ratios, n=4)
    Console().print(
        f"{given.pages} pages: {median:.3f} of the publications per second of processor time"
        f" (quartiles {low:.3f} to {high:.3f}, bar {BAR}); {page_bytes_s / 1e3:.1f} kB/s to a page",
        highlight=False,
    )


if __name__ == "__main__":
    main()
