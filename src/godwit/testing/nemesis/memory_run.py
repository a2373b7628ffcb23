"""One run of nemesis in memory: the same plan, clients and judgement, on a virtual clock.

    result = run_in_memory(17)

Seconds instead of minutes, and a seed is the same run each time.  So thousands of seeds can be run,
and one that has found something can be looked into.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from pathlib import Path

from godwit.testing.nemesis.clocks import SettableClock
from godwit.testing.nemesis.fault_kinds import NETWORK_KINDS, FaultKind
from godwit.testing.nemesis.memory_fleet import MemoryFleet
from godwit.testing.nemesis.nemesis_plan import draw_plan
from godwit.testing.nemesis.nemesis_run import NemesisResult, NemesisRun
from godwit.testing.virtual_time import run_in_virtual_time

#: Clocks of brokers in one process are not set.
MEMORY_KINDS = tuple(kind for kind in NETWORK_KINDS if kind is not FaultKind.CLOCK)


def run_in_memory(
    seed: int,
    *,
    seconds: float = 30.0,
    kinds: Collection[FaultKind] = MEMORY_KINDS,
    in_clusters: bool = False,
) -> NemesisResult:
    """The run of this seed."""
    wanted = [kind for kind in kinds if kind in MEMORY_KINDS]
    plan = draw_plan(seed, seconds=seconds, kinds=wanted, in_clusters=in_clusters)
    with tempfile.TemporaryDirectory(prefix="godwit-nemesis-") as folder:
        clock = SettableClock(Path(folder) / "clock")

        async def run() -> NemesisResult:
            fleet = MemoryFleet(plan.topology, plan.limits, seed, plan.clusters)
            return await NemesisRun(plan, fleet, clock).run()

        return run_in_virtual_time(run(), seed=seed, clocks=True)
