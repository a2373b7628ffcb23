"""Godwit itself in the forwarding benchmark: a broker process, a publisher, a subscriber.

The clients are raw ones, as those of the peers are, or the library's own, used as an application
would use them.  The subscriber holds all filters on one connection and gets one copy of each record
that any of them matches; these, and no others, must come in the order of publishing.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

import uvloop

from benchmarks import forwarding_raw
from benchmarks.forwarding_workloads import ForwardingWorkload
from benchmarks.peers.harness import (
    FIRST_ROUND_RECORDS,
    GROWTH_MAX,
    ROUND_AIM_S,
    ROUND_MIN_S,
    ROUNDS_COUNTED,
)
from benchmarks.peers.processes import LOOPBACK, PeerError, answer, client, free_port, running
from godwit.client import connect
from godwit.content.filters import Filter
from godwit.content.values import Value


def published_per_s(workload: ForwardingWorkload, *, raw: bool = True) -> float:
    """Records published per second, with raw clients or the library's."""
    port = free_port()
    with TemporaryDirectory(prefix="godwit-") as name:
        command = [
            sys.executable, "-m", "godwit", "broker", "--id", "B1",
            "--listen", f"{LOOPBACK}:{port}", "--log-level", "warning",
        ]  # fmt: skip
        with running(command, port=port, log=Path(name, "log")):
            return _measure(workload, port, raw=raw)


def _measure(workload: ForwardingWorkload, port: int, *, raw: bool) -> float:
    due = [record for record, filters in enumerate(workload.matches) if filters]
    count = min(FIRST_ROUND_RECORDS, len(workload.records))
    counted: list[float] = []
    receiving, publishing = (
        (forwarding_raw.receive, forwarding_raw.publish) if raw else (_receive, _publish)
    )
    with (
        client(receiving, LOOPBACK, port, workload.filters) as subscriber,
        client(publishing, LOOPBACK, port, workload.records) as publisher,
    ):
        while len(counted) < ROUNDS_COUNTED:
            expected = [record for record in due if record < count]
            subscriber.send(len(expected))
            publisher.send(count)
            start_s = answer(publisher)
            end_s, received = answer(subscriber)
            if received != expected:
                raise PeerError(f"{len(expected)} records were due, {len(received)} others came")
            taken_s = end_s - start_s
            if taken_s >= ROUND_MIN_S or count == len(workload.records):
                counted.append(count / taken_s)
            growth = min(ROUND_AIM_S / taken_s, GROWTH_MAX)
            count = min(max(int(count * growth), 1), len(workload.records))
    return statistics.median(counted)


def _publish(line: Connection, host: str, port: int, records: Sequence[dict[str, Value]]) -> None:
    uvloop.run(_publishing(line, f"godwit://{host}:{port}", records))


async def _publishing(line: Connection, url: str, records: Sequence[dict[str, Value]]) -> None:
    async with connect(url, name="publisher") as publisher:
        await publisher.advertise(" and ".join(f"{name} is present" for name in records[0]))
        line.send(None)
        while count := await asyncio.to_thread(line.recv):
            start_s = time.monotonic()
            for record in records[:count]:
                await publisher.publish(record)
            await publisher.flush()
            line.send(start_s)


def _receive(line: Connection, host: str, port: int, filters: Sequence[Filter]) -> None:
    uvloop.run(_receiving(line, f"godwit://{host}:{port}", filters))


async def _receiving(line: Connection, url: str, filters: Sequence[Filter]) -> None:
    async with connect(url, name="subscriber") as client, client.subscribe(*filters) as events:
        await events.in_effect()
        line.send(None)
        while count := await asyncio.to_thread(line.recv):
            contents = []
            for _ in range(count):
                event = await anext(events)
                contents.append(event.content)
            line.send((time.monotonic(), [content["number"] for content in contents]))
