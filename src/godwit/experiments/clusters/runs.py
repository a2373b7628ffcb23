"""How a case is run: subscribers join, then every broker publishes, and the oracle checks all.

The workload of a seed and a matching ratio is the same on every overlay, so that the deliveries can
be compared.  Matching takes no time and links have no limit, as in the paper: what is counted are
messages.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

from godwit.experiments.clusters.overlay_setups import brokers_of, setup_of
from godwit.experiments.watched import run_watched
from godwit.lab.declaration import Case
from godwit.simulation.observers import Observer
from godwit.simulation.playing import play
from godwit.simulation.resources import BrokerResources
from godwit.simulation.simulator import Simulator
from godwit.workloads.matching_ratio import RatioSetup, ratio_workload
from godwit.workloads.timelines import joins
from godwit.workloads.workload import Workload

JOINING_S = 5.0
#: Publications begin when all subscriptions are in effect.
FROM_S = 10.0
RESOURCES = BrokerResources(cpu_speed=1e9, output_bandwidth_bytes_s=1e15)


def workload_of(case: Case, seed: int) -> Workload:
    setup = RatioSetup(
        matching_ratio=float(case["ratio"]),
        publisher_exponent=float(case["exponent"]),
        topics=int(case["topics"]),
        publications_per_s=float(case["publications_per_s"]),
    )
    return ratio_workload(setup, brokers_of(case), Random(f"workload {seed}"))


def until_s(case: Case) -> float:
    return FROM_S + float(case["adapting_s"]) + float(case["measured_s"])


def run(case: Case, seed: int, folder: Path) -> None:
    # Zones are made from a sample that the run does not draw from.
    setup = setup_of(case, workload_of(case, seed), seed)
    workload = workload_of(case, seed)

    def build(observers: tuple[Observer, ...]) -> Simulator:
        simulator = Simulator(
            setup.topology,
            seed=seed,
            overlay=setup.overlay,
            settings=setup.settings,
            modules=setup.modules,
            resources=RESOURCES,
            observers=observers,
            check=False,
        )
        joining = joins(workload.subscribers, Random(f"joins {seed}"), within_s=JOINING_S)
        play(simulator, workload, joining, from_s=FROM_S, until_s=until_s(case))
        return simulator

    run_watched(build, folder, until_s=until_s(case), gauges_every_s=FROM_S)
