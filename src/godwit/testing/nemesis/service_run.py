"""A run against the services: the data cluster and the coordinator die, and the disk is full.

Three brokers, a data cluster and a coordinator, each a process.  A publisher numbers its records,
a feed stores them, and subscribers to a channel must receive each of theirs once.  All subscribers
begin at one broker, so the coordinator makes plans to move them.

Spark takes long to start, so these runs are apart from the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import msgspec

from godwit.api import coordinator_api
from godwit.api import datacluster_api as api
from godwit.client import Client, connect
from godwit.content.geography import GeoPoint
from godwit.errors import GodwitError
from godwit.http.http_client import HttpClient
from godwit.http.operations import Nothing
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
from godwit.testing.nemesis.fault_kinds import SERVICE_KINDS, FaultKind
from godwit.testing.nemesis.journal import Journal
from godwit.testing.nemesis.nemesis_run import NemesisResult

BROKERS = 3
READERS = 9
PER_S = 100.0
#: Spark is slow, and twice as slow when it starts again.
STATEMENT_S = 180.0
SETTLE_S = 300.0
#: Files of the data cluster grow no further for so long.
FULL_S = (0.5, 3.0)
FULL_BYTES = 4_096
PAUSE_S = (0.5, 2.0)
#: For the coordinator to be in the middle of a plan; then it is killed in any case.
PLAN_S = 5.0
COORDINATOR_OPTIONS = (
    "--placement", "nearest", "--report-s", "1", "--hold-s", "1", "--moves-per-s", "5",
    "--alpha", "0.2", "--beta", "1",
)  # fmt: skip


class ServiceRun:
    def __init__(self, seed: int, seconds: float, folder: Path) -> None:
        self._random = Random(seed)
        self._seed = seed
        self._seconds = seconds
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
        except (GodwitError, TimeoutError) as error:
            self._journal.problem(f"{type(error).__name__}: {error}")
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
        await self._let_fail()
        is_over.set()
        async with asyncio.timeout(SETTLE_S):
            await publishing
            while any(  # noqa: ASYNC110  Many readers, and no event for them all.
                reader.faults(self._published) for reader in self._readers
            ):
                await asyncio.sleep(0.2)
        await asyncio.sleep(1.0)  # Something that arrives twice may be late.

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
        async with asyncio.timeout(STATEMENT_S):
            await events.in_effect()
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

    # -- faults --------------------------------------------------------------------------------

    async def _let_fail(self) -> None:
        """Until the time is over, each kind at least once, and cheap ones more often."""
        happen: dict[FaultKind, Callable[[], Awaitable[None]]] = {
            FaultKind.DISK_FULL: self._fill_disk,
            FaultKind.COORDINATOR: self._kill_coordinator,
            FaultKind.DATACLUSTER: self._kill_cluster,
        }
        loop = asyncio.get_running_loop()
        end_s = loop.time() + self._seconds
        kinds = list(SERVICE_KINDS)
        while kinds or loop.time() < end_s:
            kind = kinds.pop() if kinds else self._random.choices(SERVICE_KINDS, (5, 5, 1))[0]
            await asyncio.sleep(self._random.uniform(*PAUSE_S))
            self._journal.note(f"FAULT {kind.value} after {self._published} records")
            self._journal.faults[kind] += 1
            await happen[kind]()
            self._journal.note(f"mended: {kind.value}")

    async def _fill_disk(self) -> None:
        """The files of the data cluster, of Spark too, do not grow for a while."""
        pids = [self._cluster.pid, *_descendants(self._cluster.pid)]
        limits = {pid: resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in pids}
        for pid, (_, hard) in limits.items():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (FULL_BYTES, hard))
        await asyncio.sleep(self._random.uniform(*FULL_S))
        for pid, limit in limits.items():
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, limit)

    async def _kill_coordinator(self) -> None:
        """In the middle of a plan, if it makes one soon."""
        with contextlib.suppress(TimeoutError, GodwitError):
            async with asyncio.timeout(PLAN_S), HttpClient(self._coordinator.url) as caller:
                while not await _has_plan(caller):  # noqa: ASYNC110  In another process.
                    await asyncio.sleep(0.05)
                self._journal.note("the coordinator is in the middle of a plan")
        await self._coordinator.kill()
        await asyncio.sleep(self._random.uniform(0.0, 2.0))
        await self._coordinator.start()

    async def _kill_cluster(self) -> None:
        await self._cluster.kill()
        await self._cluster.start()


async def _has_plan(coordinator: HttpClient) -> bool:
    plan = (await coordinator.call(coordinator_api.PLAN, Nothing())).plan
    return plan is not None and plan.ended_s is None


def _descendants(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *_descendants(child)]
    return found
