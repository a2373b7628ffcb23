"""How `static-tree` is run: simulated, or through broker processes.

A case is `{"driver": "simulated", "brokers": 63, "mix": "random", "x": 4}`; the number of brokers
determines the rest.  A live case runs through broker processes; its trace has the deliveries as
seen by the clients, and no messages of brokers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import uvloop

from godwit.experiments.watched import run_watched
from godwit.lab.declaration import Case
from godwit.overlay.topology import Topology, balanced_tree
from godwit.runtime.processes import Processes
from godwit.runtime.settings import network_of
from godwit.simulation.observers import Observer
from godwit.simulation.oracle import Oracle
from godwit.simulation.playing import play
from godwit.simulation.simulation_trace import SimulationTrace
from godwit.simulation.simulator import Simulator
from godwit.testing import live_play
from godwit.trace.recorder import Recorder
from godwit.trace.writer import TraceWriter
from godwit.workloads.placement import CLUSTER, PLANETLAB, Mix, PlacementSetup, placement_workload
from godwit.workloads.stocks import THESIS_LIKE, StockMarket
from godwit.workloads.timelines import Join, joins
from godwit.workloads.workload import Workload

FANOUT = 2
#: Size of the smallest tree, which is run live as well.
PARITY_BROKERS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    setup: PlacementSetup
    joining_s: float
    """Subscribers join in this time."""

    from_s: float
    """Publishing starts."""

    read_from_s: float
    until_s: float
    """End of publishing and of the measured time."""


SIZES: Mapping[int, Size] = {
    PARITY_BROKERS: Size(
        setup=PlacementSetup(
            publishers=4, publications_per_min=(300.0, 900.0), subscribers_per_publisher=12
        ),
        joining_s=1.0, from_s=1.5, read_from_s=1.5, until_s=4.5,
    ),
    31: Size(
        setup=PlacementSetup(
            publishers=8, publications_per_min=(30.0, 120.0), subscribers_per_publisher=40
        ),
        joining_s=20.0, from_s=21.0, read_from_s=30.0, until_s=90.0,
    ),
    63: Size(setup=PLANETLAB, joining_s=60.0, from_s=61.0, read_from_s=900.0, until_s=1080.0),
    127: Size(setup=CLUSTER, joining_s=60.0, from_s=61.0, read_from_s=900.0, until_s=1080.0),
}  # fmt: skip


def topology_of(case: Case) -> Topology:
    return balanced_tree(int(case["brokers"]), fanout=FANOUT)


def size_of(case: Case) -> Size:
    return SIZES[int(case["brokers"])]


def is_live(case: Case) -> bool:
    return case["driver"] == "live"


def run(case: Case, seed: int, folder: Path) -> None:
    topology, size, random = topology_of(case), size_of(case), Random(seed)
    setup = replace(size.setup, mix=Mix(case["mix"]), brokers_with_subscribers=int(case["x"]))
    market = StockMarket(random, symbols=setup.publishers, profile=THESIS_LIKE)
    workload = placement_workload(setup, market, topology.brokers, random)
    joining = joins(workload.subscribers, random, within_s=size.joining_s)
    if is_live(case):
        uvloop.run(_run_live(topology, workload, joining, size, folder))
        return

    def build(observers: tuple[Observer, ...]) -> Simulator:
        simulator = Simulator(topology, seed=seed, observers=observers, check=False)
        play(simulator, workload, joining, from_s=size.from_s, until_s=size.until_s)
        return simulator

    run_watched(build, folder, until_s=size.until_s)


async def _run_live(
    topology: Topology, workload: Workload, joining: tuple[Join, ...], size: Size, folder: Path
) -> None:
    oracle = Oracle(settle_s=live_play.QUIET_S)
    with TraceWriter(folder) as writer:
        async with Processes(network_of(topology)) as running:
            await live_play.play(
                running.url,
                workload,
                joining,
                from_s=size.from_s,
                until_s=size.until_s,
                oracle=oracle,
                watching=(SimulationTrace(Recorder(writer)),),
            )
    assert oracle.is_satisfied, f"{oracle.violation_count} violations: {oracle.violations[0]}"
    assert oracle.deliveries, "the run has no deliveries"
