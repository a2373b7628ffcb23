"""Godwit itself in the forwarding benchmark: a broker process, a publisher, a subscriber.

The clients are raw ones, as for the peers, or the library's, used as in an application.  The
subscriber holds all filters on one connection and gets one copy of each record that any of them
matches; these, and no others, must arrive in the order of publishing.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

import uvloop

from benchmarks import forwarding_raw
from benchmarks.forwarding_workloads import ForwardingWorkload
from benchmarks.peers.harness import median_per_s
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
    receiving, publishing = (
        (forwarding_raw.receive, forwarding_raw.publish) if raw else (_receive, _publish)
    )
    with (
        client(receiving, LOOPBACK, port, workload.filters) as subscriber,
        client(publishing, LOOPBACK, port, workload.records) as publisher,
    ):

        def round_s(count: int) -> float:
            expected = [record for record in due if record < count]
            subscriber.send(len(expected))
            publisher.send(count)
            start_s: float = answer(publisher)
            end_s, received = answer(subscriber)
            if received != expected:
                raise PeerError(f"{len(expected)} records were due, {len(received)} others arrived")
            taken_s: float = end_s - start_s
            return taken_s

        return median_per_s(round_s, records=len(workload.records))


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
