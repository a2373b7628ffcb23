"""One run as a process: `python -m godwit.testing.nemesis.seed_process`, used by seeds.py.

A process of its own has its own clock, and its own process group, of which nothing must be left.
It is on a leash: if whoever started it ends, so do all of the group.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from pathlib import Path

import msgspec
import uvloop

from godwit.testing.nemesis.broker_fleet import BrokerFleet
from godwit.testing.nemesis.clocks import SettableClock
from godwit.testing.nemesis.fault_kinds import FaultKind
from godwit.testing.nemesis.memory_run import run_in_memory
from godwit.testing.nemesis.nemesis_plan import draw_plan
from godwit.testing.nemesis.nemesis_run import NemesisResult, NemesisRun
from godwit.testing.nemesis.service_run import ServiceRun


class SeedRequest(msgspec.Struct, frozen=True):
    seed: int
    seconds: float
    kinds: tuple[FaultKind, ...]
    folder: str
    """For files, logs and clocks; exists."""

    services: bool = False
    """A run against the data cluster and the coordinator."""

    in_memory: bool = False
    """Brokers are no processes, and the clock is virtual."""

    in_clusters: bool = False
    """Brokers are in clusters, not in a tree."""

    @property
    def clock_file(self) -> Path:
        """The clock of this process."""
        return Path(self.folder) / "clients.clock"


def _hold_leash() -> None:
    while os.read(0, 4096):
        pass
    os.killpg(0, signal.SIGKILL)


async def _run(request: SeedRequest) -> NemesisResult:
    folder = Path(request.folder)
    if request.services:
        return await ServiceRun(request.seed, request.seconds, request.kinds, folder).run()
    plan = draw_plan(
        request.seed,
        seconds=request.seconds,
        kinds=request.kinds,
        in_clusters=request.in_clusters,
    )
    fleet = BrokerFleet(plan.topology, plan.limits, folder, plan.clusters)
    return await NemesisRun(plan, fleet, SettableClock(request.clock_file)).run()


def main() -> None:
    request = msgspec.json.decode(sys.argv[1], type=SeedRequest)
    threading.Thread(target=_hold_leash, daemon=True).start()
    logging.getLogger("godwit").setLevel(logging.ERROR)
    logging.getLogger("godwit").propagate = False  # What brokers in memory log is in the story.
    if request.in_memory:
        result = run_in_memory(
            request.seed,
            seconds=request.seconds,
            kinds=request.kinds,
            in_clusters=request.in_clusters,
        )
    else:
        result = uvloop.run(_run(request))
    sys.stdout.buffer.write(msgspec.json.encode(result))
    sys.stdout.flush()
    os._exit(0)  # The thread still holds the leash.


if __name__ == "__main__":
    main()
