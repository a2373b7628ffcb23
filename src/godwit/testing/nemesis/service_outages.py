"""Makes the services fail: the data cluster and the coordinator are killed, and the disk is full.

The three kinds happen side by side, each after its own pauses: a full disk while the coordinator
is down, a data cluster that dies with a full disk, and so on.  Spark takes long to start, so a
service is often killed again while it starts: it recovers from a recovery, then.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from random import Random

from godwit.api import coordinator_api
from godwit.errors import GodwitError
from godwit.http.http_client import HttpClient
from godwit.http.operations import Nothing
from godwit.runtime.service import Service
from godwit.testing.nemesis.fault_kinds import FaultKind
from godwit.testing.nemesis.journal import Journal

#: Before a fault, by kind.
PAUSE_S = {
    FaultKind.DISK_FULL: (1.0, 4.0),
    FaultKind.COORDINATOR: (0.2, 1.0),
    FaultKind.DATACLUSTER: (1.0, 10.0),
}
#: Files of the data cluster grow no further for so long.
FULL_S = (0.1, 1.5)
FULL_BYTES = 4_096
#: For the coordinator to be in the middle of a plan; then it is killed in any case.
PLAN_S = 3.0
DOWN_S = (0.0, 1.0)
#: A service is killed again so often at most, each time so long after it was started.
AGAIN_MAX = {FaultKind.COORDINATOR: 3, FaultKind.DATACLUSTER: 19}
STARTING_S = {FaultKind.COORDINATOR: (0.1, 3.0), FaultKind.DATACLUSTER: (0.1, 8.0)}


class ServiceOutages:
    def __init__(
        self,
        seed: int,
        seconds: float,
        kinds: Collection[FaultKind],
        *,
        journal: Journal,
        coordinator: Service,
        cluster: Service,
    ) -> None:
        self._seed = seed
        self._seconds = seconds
        self._kinds = kinds
        self._journal = journal
        self._coordinator = coordinator
        self._cluster = cluster
        self._cluster_is_up = True

    async def let_fail(self) -> None:
        """Until the time is over, and each kind at least once."""
        happen = {
            FaultKind.DISK_FULL: self._fill_disk,
            FaultKind.COORDINATOR: self._kill_coordinator,
            FaultKind.DATACLUSTER: self._kill_cluster,
        }
        async with asyncio.TaskGroup() as failing:
            for kind in happen.keys() & self._kinds:
                failing.create_task(self._repeat(kind, happen[kind]))

    async def _repeat(self, kind: FaultKind, happen: Callable[[Random], Awaitable[None]]) -> None:
        random = Random(f"{self._seed} {kind.value}")
        loop = asyncio.get_running_loop()
        end_s = loop.time() + self._seconds
        while loop.time() < end_s or not self._journal.faults[kind]:
            await asyncio.sleep(random.uniform(*PAUSE_S[kind]))
            await happen(random)

    def _note(self, kind: FaultKind, text: str) -> None:
        self._journal.faults[kind] += 1
        self._journal.note(f"FAULT {kind.value}: {text}")

    async def _fill_disk(self, random: Random) -> None:
        """The files of the data cluster, of Spark too, do not grow for a while."""
        if not self._cluster_is_up:
            return  # On a full disk Spark does not start.
        pids = [self._cluster.pid, *_descendants(self._cluster.pid)]
        limits = {pid: limit for pid in pids if (limit := _file_limit(pid)) is not None}
        self._note(FaultKind.DISK_FULL, f"{len(limits)} processes write no more")
        for pid, (_, hard) in limits.items():
            _limit_files(pid, (FULL_BYTES, hard))
        await asyncio.sleep(random.uniform(*FULL_S))
        for pid, limit in limits.items():
            _limit_files(pid, limit)
        self._journal.note("there is space again")

    async def _kill_coordinator(self, random: Random) -> None:
        """In the middle of a plan, if it makes one soon."""
        when = "at rest"
        with contextlib.suppress(TimeoutError, GodwitError):
            async with asyncio.timeout(PLAN_S), HttpClient(self._coordinator.url) as caller:
                while not await _has_plan(caller):  # noqa: ASYNC110  In another process.
                    await asyncio.sleep(0.05)
                when = "in the middle of a plan"
        await self._kill(FaultKind.COORDINATOR, self._coordinator, random, when)
        await asyncio.sleep(random.uniform(*DOWN_S))
        await self._start_at_last(FaultKind.COORDINATOR, self._coordinator, random)

    async def _kill_cluster(self, random: Random) -> None:
        self._cluster_is_up = False
        await self._kill(FaultKind.DATACLUSTER, self._cluster, random, "at work")
        await self._start_at_last(FaultKind.DATACLUSTER, self._cluster, random)
        self._cluster_is_up = True

    async def _start_at_last(self, kind: FaultKind, service: Service, random: Random) -> None:
        """Start it, and kill it some times before it answers, or soon after."""
        for _ in range(random.randint(0, AGAIN_MAX[kind])):
            starting = asyncio.create_task(service.start())
            await asyncio.wait([starting], timeout=random.uniform(*STARTING_S[kind]))
            while not (service.is_running or starting.done()):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            is_up = starting.done()
            if is_up:
                starting.result()  # Otherwise it has ended by itself.
            await self._kill(kind, service, random, "soon after" if is_up else "as it starts")
            with contextlib.suppress(GodwitError):  # It has ended before it answered.
                await starting
        await service.start()
        self._journal.note(f"mended: {kind.value}")

    async def _kill(self, kind: FaultKind, service: Service, random: Random, when: str) -> None:
        """SIGKILL, of its children too or of itself only, which they notice."""
        others = _descendants(service.pid) if random.random() < 0.5 else []
        self._note(kind, f"killed {when}, with {len(others)} other processes")
        await service.kill()
        for pid in others:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


async def _has_plan(coordinator: HttpClient) -> bool:
    plan = (await coordinator.call(coordinator_api.PLAN, Nothing())).plan
    return plan is not None and plan.ended_s is None


def _file_limit(pid: int) -> tuple[int, int] | None:
    """How large its files may be; None if the process is gone."""
    try:
        return resource.prlimit(pid, resource.RLIMIT_FSIZE)
    except ProcessLookupError:
        return None


def _limit_files(pid: int, limit: tuple[int, int]) -> None:
    with contextlib.suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, limit)


def _descendants(pid: int) -> list[int]:
    found = []
    with contextlib.suppress(OSError):  # It has just ended.
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *_descendants(child)]
    return found
