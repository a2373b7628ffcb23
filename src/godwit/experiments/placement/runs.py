"""How the experiments about publisher placement are run.

A case is `{"brokers": 63, "fanout": 2, "mix": "enterprise", "x": 4, "policy": "grape-load"}`, with
a `weight` in percent and a `threshold`, if these are varied; the number of brokers determines the
rest.  A seed has the same publishers and subscribers at the same brokers, and the same quotes, with
every policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from msgspec import structs

from godwit.broker.modules import PolicyModule
from godwit.experiments.watched import run_watched
from godwit.lab.declaration import Case
from godwit.overlay.topology import balanced_tree
from godwit.policies import placement
from godwit.policies.placement.settings import GrapeSettings, PopSettings
from godwit.simulation.observers import Observer
from godwit.simulation.playing import play
from godwit.simulation.simulator import Simulator
from godwit.workloads.placement import CLUSTER, PLANETLAB, Mix, PlacementSetup, placement_workload
from godwit.workloads.stocks import THESIS_LIKE, StockMarket
from godwit.workloads.timelines import joins


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    setup: PlacementSetup
    threshold: int
    """P_threshold and G_threshold: the traces, or publications, that a decision needs; a case can
    override it."""

    joining_s: float
    """Subscribers join in this time; a second later publishing starts."""

    read_from_s: float
    until_s: float
    """End of publishing and of the measured time; moves are counted from the start."""


SIZES: Mapping[int, Size] = {
    31: Size(
        setup=PlacementSetup(
            publishers=6, publications_per_min=(60.0, 180.0), subscribers_per_publisher=40
        ),
        threshold=40, joining_s=5.0, read_from_s=240.0, until_s=300.0,
    ),
    63: Size(
        setup=PLANETLAB, threshold=50, joining_s=60.0, read_from_s=900.0, until_s=1080.0
    ),
    127: Size(
        setup=CLUSTER, threshold=100, joining_s=60.0, read_from_s=600.0, until_s=720.0
    ),
}  # fmt: skip


def size_of(case: Case) -> Size:
    return SIZES[int(case["brokers"])]


def modules_of(case: Case, seed: int) -> Callable[[str], Sequence[PolicyModule]]:
    """The policy of a case, with its threshold and weight and otherwise default settings.

    POP traces at most half the threshold in a window, as by default and in the thesis.
    """
    threshold = int(case.get("threshold", size_of(case).threshold))
    match placement.named(str(case["policy"])):
        case PopSettings() as pop:
            window = threshold // 2
            pop = structs.replace(pop, traces_per_decision=threshold, traces_per_window=window)
            return placement.modules(pop, seed=seed)
        case GrapeSettings() as grape:
            weight = float(case.get("weight", grape.weight_percent))
            return placement.modules(
                structs.replace(grape, publications_per_session=threshold, weight_percent=weight)
            )
        case None:
            return placement.modules("static")


def run(case: Case, seed: int, folder: Path) -> None:
    topology = balanced_tree(int(case["brokers"]), fanout=int(case["fanout"]))
    size, random = size_of(case), Random(seed)
    setup = replace(size.setup, mix=Mix(case["mix"]), brokers_with_subscribers=int(case["x"]))
    market = StockMarket(random, symbols=setup.publishers, profile=THESIS_LIKE)
    workload = placement_workload(setup, market, topology.brokers, random)
    joining = joins(workload.subscribers, random, within_s=size.joining_s)

    def build(observers: tuple[Observer, ...]) -> Simulator:
        modules = modules_of(case, seed)
        simulator = Simulator(
            topology, seed=seed, modules=modules, observers=observers, check=False
        )
        from_s = size.joining_s + 1.0
        play(simulator, workload, joining, from_s=from_s, until_s=size.until_s)
        return simulator

    run_watched(build, folder, until_s=size.until_s)
