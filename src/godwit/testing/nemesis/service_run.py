"""A run against the services: the data cluster and the coordinator die, and the disk is full.

Three brokers, a data cluster and a coordinator, each a process.  A publisher numbers its records,
a feed stores them, and subscribers to a channel must receive each of theirs once.  All subscribers
begin at one broker, so the coordinator makes plans to move them.

Spark takes long to start, so these runs are apart from the others.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection
from pathlib import Path

import msgspec

from godwit.api import datacluster_api as api
from godwit.client import Client, connect
from godwit.content.geography import GeoPoint
from godwit.errors import GodwitError
from godwit.http.http_client import HttpClient
from godwit.overlay.topology import chain
from godwit.runtime.processes import Processes, free_port
from godwit.runtime.service import Service
from godwit.runtime.settings import NetworkSettings, network_of
from godwit.testing.nemesis.channel_readers import (
    ADVERTISED,
    CHANNEL,
    DATASET,
    FEED,
    KINDS,
    ChannelReader,
)
from godwit.testing.nemesis.fault_kinds import FaultKind
from godwit.testing.nemesis.journal import Journal
from godwit.testing.nemesis.nemesis_run import NemesisResult
from godwit.testing.nemesis.patience import in_time
from godwit.testing.nemesis.service_outages import ServiceOutages

BROKERS = 3
READERS = 9
PER_S = 100.0
#: Spark is slow, and twice as slow when it starts again; on a busy machine it is very slow.
STATEMENT_S = 180.0
SETTLE_S = 300.0
START_S = 1_200.0
COORDINATOR_OPTIONS = (
    "--placement", "nearest", "--report-s", "1", "--hold-s", "1", "--moves-per-s", "5",
    "--alpha", "0.2", "--beta", "1",
)  # fmt: skip


class ServiceRun:
    def __init__(
        self, seed: int, seconds: float, kinds: Collection[FaultKind], folder: Path
    ) -> None:
        self._seed = seed
        self._seconds = seconds
        self._kinds = kinds
        self._folder = folder
        self._journal = Journal()
        self._published = 0
        self._readers: list[ChannelReader] = []
        self._listen = {name: f"127.0.0.1:{free_port()}" for name in ("datacluster", "coordinator")}
        self._coordinator = Service(
            "coordinator", "--listen", self._listen["coordinator"],
            "--state", str(folder / "coordinator"), *COORDINATOR_OPTIONS,
        )  # fmt: skip
        self._cluster: Service

    async def run(self) -> NemesisResult:
        result = NemesisResult(self._seed, BROKERS, self._seconds)
        try:
            async with contextlib.AsyncExitStack() as stack:
                await self._play(stack)
        except (GodwitError, TimeoutError, ExceptionGroup) as error:
            causes = error.exceptions if isinstance(error, ExceptionGroup) else (error,)
            for cause in causes:
                self._journal.problem(f"{type(cause).__name__}: {cause}")
        result.publications = result.acknowledged = self._published
        result.deliveries = sum(len(reader.received) for reader in self._readers)
        result.faults = {kind.value: count for kind, count in self._journal.faults.items()}
        result.violations = self._journal.problems
        for reader in self._readers:
            result.violations += reader.faults(self._published)
        if result.violations:
            result.story = [f"{at_s:7.2f} {text}" for at_s, text in self._journal.events]
        return result

    async def _play(self, stack: contextlib.AsyncExitStack) -> None:
        await stack.enter_async_context(self._coordinator)
        brokers = await stack.enter_async_context(Processes(self._network(), log_level="error"))
        self._cluster = Service(
            "datacluster", "--listen", self._listen["datacluster"],
            "--folder", str(self._folder / "data"), "--broker", brokers.url("B1"),
            ready_s=START_S,
        )  # fmt: skip
        await stack.enter_async_context(self._cluster)
        async with HttpClient(self._cluster.url, answer_s=STATEMENT_S) as caller:
            for text in (DATASET, FEED, CHANNEL):
                await caller.call(api.STATEMENT, api.Statement(text))
        for number in range(READERS):
            await self._add_reader(stack, number)
        publisher = await stack.enter_async_context(connect(brokers.url("B3"), name="paul"))
        await publisher.advertise(ADVERTISED)
        is_over = asyncio.Event()
        publishing = asyncio.create_task(self._publish(publisher, is_over))
        outages = ServiceOutages(
            self._seed,
            self._seconds,
            self._kinds,
            journal=self._journal,
            coordinator=self._coordinator,
            cluster=self._cluster,
        )
        await outages.let_fail()
        is_over.set()
        await in_time(publishing, SETTLE_S)
        await in_time(self._all_arrived(), SETTLE_S)
        await asyncio.sleep(1.0)  # Something that arrives twice may be late.

    async def _all_arrived(self) -> None:
        while any(  # noqa: ASYNC110  Many readers, and no event for them all.
            reader.faults(self._published) for reader in self._readers
        ):
            await asyncio.sleep(0.2)

    def _network(self) -> NetworkSettings:
        network = network_of(chain(BROKERS), http_port=0)
        located = [
            msgspec.structs.replace(broker, location=GeoPoint(60.0 + number, 25.0))
            for number, broker in enumerate(network.broker)
        ]
        urls = {name: f"http://{listen}" for name, listen in self._listen.items()}
        return msgspec.structs.replace(network, broker=located, **urls)

    async def _add_reader(self, stack: contextlib.AsyncExitStack, number: int) -> None:
        url = f"bcs+{self._coordinator.url}"
        reader = connect(url, name=f"reader-{number}", location=(60.0, 25.0))
        client = await stack.enter_async_context(reader)
        kind = number % KINDS
        events = await stack.enter_async_context(client.subscribe_channel("OfKind", wanted=kind))
        await in_time(events.in_effect(), STATEMENT_S)
        self._readers.append(ChannelReader(kind, events))
        task = asyncio.create_task(self._readers[-1].read())
        stack.callback(task.cancel)

    async def _publish(self, publisher: Client, is_over: asyncio.Event) -> None:
        while not is_over.is_set():
            n = self._published
            await publisher.publish({"class": "N", "n": n, "kind": n % KINDS, "text": f"text {n}"})
            self._published += 1
            await asyncio.sleep(1 / PER_S)
        await publisher.flush()
