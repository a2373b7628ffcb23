"""How `static-tree` is run and measured.  What it asks and claims is in static_tree.py.

A case is `{"driver": "simulated", "brokers": 63, "mix": "random", "x": 4}`; the number of brokers
decides the rest.  A live case is played through broker processes; its trace has what the clients
were delivered, as seen by them, and nothing of what brokers did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import uvloop
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from godwit import live
from godwit.experiments.watched import run_watched
from godwit.lab.experiment import Case, Trace
from godwit.lab.numbers import numbers
from godwit.lab.paths import delay, forwarding, hop_count
from godwit.lab.profiles import publisher_rates
from godwit.lab.rates import message_rate, utilisation_over_time
from godwit.lab.stages import Span, stage
from godwit.lab.traffic import aggregate_traffic, overhead_by_kind
from godwit.network.processes import Processes
from godwit.network.settings import network_of
from godwit.overlay.topology import Topology, balanced_tree
from godwit.simulation.observers import Observer
from godwit.simulation.oracle import Oracle
from godwit.simulation.playing import play
from godwit.simulation.simulator import Simulator
from godwit.simulation.tracing import Tracing
from godwit.trace.recorder import Recorder
from godwit.trace.writer import TraceWriter
from godwit.workloads.placement import CLUSTER, PLANETLAB, Mix, PlacementSetup, placement_workload
from godwit.workloads.stocks import THESIS_LIKE, StockMarket
from godwit.workloads.timelines import Join, joins
from godwit.workloads.workload import Workload

FANOUT = 2
#: Of the smallest tree, which is played live as well.
PARITY_BROKERS = 7
#: Simulated time starts at 0, live time in 1970.
EVER = Span(0.0, 1e10)
#: Of digests.  Their sum over a run is exact in a float.
DIGEST_BELOW = 1_000_003


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    setup: PlacementSetup
    joining_s: float
    """Subscribers join in this time."""

    from_s: float
    """Publishing starts."""

    read_from_s: float
    until_s: float
    """Publishing ends, and what is measured."""


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
    oracle = Oracle(settle_s=live.QUIET_S)
    with TraceWriter(folder) as writer:
        async with Processes(network_of(topology)) as running:
            await live.play(
                running.url,
                workload,
                joining,
                from_s=size.from_s,
                until_s=size.until_s,
                oracle=oracle,
                watching=(Tracing(Recorder(writer)),),
            )
    assert oracle.is_satisfied, f"{oracle.violation_count} violations: {oracle.violations[0]}"
    assert oracle.deliveries, "a run without deliveries shows nothing"


def measure(trace: Trace, case: Case) -> dict[str, float]:
    size = size_of(case)
    if int(case["brokers"]) == PARITY_BROKERS:
        return numbers(hop_count(trace, EVER), delay(trace, EVER), delivery_digest(trace, EVER))
    whole = Span(size.read_from_s, size.until_s, bucket_s=size.until_s - size.read_from_s)
    found = numbers(
        hop_count(trace, whole),
        delay(trace, whole),
        message_rate(trace, whole).drop("brokers", "messages_per_s_cov"),
        utilisation_over_time(trace, whole).drop(
            "bucket_s", "matching_delay_s_mean", "messages_queued_max"
        ),
        aggregate_traffic(trace, whole).select(F.col("messages_per_s").alias("between_per_s")),
        forwarding(trace, whole).select("pure_forwarders"),
        publisher_rates(trace, whole).agg(F.sum("publications").alias("publications")),
        _overhead(overhead_by_kind(trace, whole)),
    )
    wanting = found["publications"] * size.setup.subscribers_per_publisher
    return {**found, "sunk_share": found["deliveries"] / wanting}


def _overhead(by_kind: DataFrame) -> DataFrame:
    """The share of messages that are no publications of clients."""
    is_overhead = (F.col("kind") != "Publication") | F.col("is_control")
    share = F.sum(F.when(is_overhead, F.col("share")).otherwise(0.0))
    return by_kind.agg(share.alias("overhead_share"))


@stage("delivered", columns="digest bigint")
def delivery_digest(delivered: DataFrame, over: Span) -> DataFrame:
    """A number that two runs share if they made the same deliveries, over the same distances.

    Publications are counted for each publisher: live clients do not number theirs from 0.
    """
    number = F.dense_rank().over(Window.partitionBy("publisher").orderBy("sequence"))
    row = F.xxhash64("client", "publisher", number, "hops")
    digests = over.of(delivered).select(F.pmod(row, F.lit(DIGEST_BELOW)).alias("digest"))
    return digests.agg(F.pmod(F.sum("digest"), F.lit(DIGEST_BELOW)).alias("digest"))
