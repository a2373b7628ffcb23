"""How `grape-enterprise` and `grape-random` are run and measured.

A case is `{"brokers": 63, "mix": "enterprise", "x": 4, "policy": "grape-load"}`; the number of
brokers decides the rest.  The same seed has the same publishers and subscribers at the same places,
and the same quotes, with every policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from godwit import placement
from godwit.broker.modules import PolicyModule
from godwit.experiments.watched import run_watched
from godwit.lab.experiment import Case, Measure, Trace
from godwit.lab.numbers import numbers
from godwit.lab.paths import delay, hop_count
from godwit.lab.rates import message_rate, rates_of_every_broker, utilisation_over_time
from godwit.lab.stages import Span, stage
from godwit.lab.traffic import aggregate_traffic
from godwit.overlay.topology import balanced_tree
from godwit.placement.settings import GrapeSettings, PopSettings
from godwit.simulation.observers import Observer
from godwit.simulation.playing import play
from godwit.simulation.simulator import Simulator
from godwit.workloads.placement import CLUSTER, PLANETLAB, Mix, PlacementSetup, placement_workload
from godwit.workloads.stocks import THESIS_LIKE, StockMarket
from godwit.workloads.timelines import joins

FANOUT = 2
#: Of digests.  Their sum over a run is exact in a float.
DIGEST_BELOW = 1_000_003


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    setup: PlacementSetup
    threshold: int
    """P_threshold and G_threshold: traces, or publications, that a decision takes."""

    joining_s: float
    """Subscribers join in this time; a second later publishing starts."""

    read_from_s: float
    until_s: float
    """Publishing ends, and what is measured; moves are counted from the beginning."""


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
        setup=CLUSTER, threshold=100, joining_s=60.0, read_from_s=900.0, until_s=1080.0
    ),
}  # fmt: skip


def size_of(case: Case) -> Size:
    return SIZES[int(case["brokers"])]


def modules_of(case: Case, seed: int) -> Callable[[str], Sequence[PolicyModule]]:
    """The policy of a case, with the threshold of its size, and all else as it is by default.

    POP traces at most half the threshold in a window, as by default, and as the thesis varies it.
    """
    threshold = size_of(case).threshold
    match placement.named(str(case["policy"])):
        case PopSettings() as pop:
            window = threshold // 2
            pop = replace(pop, traces_per_decision=threshold, traces_per_window=window)
            return placement.modules(pop, seed=seed)
        case GrapeSettings() as grape:
            return placement.modules(replace(grape, publications_per_session=threshold))
        case None:
            return placement.modules("static")


def run(case: Case, seed: int, folder: Path) -> None:
    topology = balanced_tree(int(case["brokers"]), fanout=FANOUT)
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


# -- measures --------------------------------------------------------------------------------------

MEASURES: Mapping[str, Measure] = {
    "messages_per_s_mean": Measure("messages/s", "message rate of a broker, in and out, mean"),
    "messages_in_per_s_mean": Measure("messages/s", "... without those that leave"),
    "messages_per_s_max": Measure("messages/s", "... of the busiest broker"),
    "between_per_s": Measure("messages/s", "all messages from broker to broker"),
    "input_utilisation_mean": Measure("", "share of its matching capacity that a broker uses"),
    "input_utilisation_max": Measure("", "... highest reading of any broker"),
    "output_utilisation_mean": Measure("", "share of its bandwidth that a broker uses"),
    "output_utilisation_max": Measure("", "... highest reading of any broker"),
    "overhead_share": Measure("", "letters and routing messages, of all messages in and out"),
    "deliveries": Measure("deliveries", "of publications to subscribers"),
    "hops_mean": Measure("hops", "links between publisher's and subscriber's broker, mean"),
    "hops_max": Measure("hops", "... the farthest"),
    "delay_s_mean": Measure("s", "from the publisher's broker to the subscriber, mean"),
    "delay_s_p50": Measure("s", "... median"),
    "delay_s_p99": Measure("s", "... 99th percentile"),
    "moves": Measure("moves", "of publishers, from the beginning"),
    "moved_last_s": Measure("s", "when the last of them was over; 0 without any"),
    "paused_s_mean": Measure("s", "how long publications had to wait for a move; 0 without any"),
    "paused_s_max": Measure("s", "... at most"),
    "homes": Measure("", "equal for two runs whose publishers moved to the same brokers"),
}


def measure(trace: Trace, case: Case) -> dict[str, float]:
    size = size_of(case)
    whole = Span(size.read_from_s, size.until_s, bucket_s=size.until_s - size.read_from_s)
    return numbers(
        hop_count(trace, whole),
        delay(trace, whole),
        message_rate(trace, whole).select("messages_per_s_mean", "messages_per_s_max"),
        messages_in(trace, whole),
        utilisation_over_time(trace, whole).drop(
            "bucket_s", "matching_delay_s_mean", "messages_queued_max"
        ),
        aggregate_traffic(trace, whole).select(F.col("messages_per_s").alias("between_per_s")),
        overhead(trace, whole),
        relocations(trace, Span(0.0, size.until_s)),
    )


@stage("handled", "gauges", columns="messages_in_per_s_mean double")
def messages_in(handled: DataFrame, gauges: DataFrame, over: Span) -> DataFrame:
    """Messages that came in, over all brokers."""
    rates = rates_of_every_broker(handled, gauges, over)
    return rates.agg(F.avg("messages_in_per_s").alias("messages_in_per_s_mean"))


@stage("handled", columns="overhead_share double")
def overhead(handled: DataFrame, over: Span) -> DataFrame:
    """What brokers send each other that is no client's publication, of all messages in and out.

    Each is counted twice, where it leaves and where it arrives: it may leave with a publication.
    """
    is_overhead = F.col("from_broker") & ((F.col("kind") != "Publication") | F.col("is_control"))
    in_and_out = F.count("*") + F.sum("messages_out")
    share = 2 * F.count(F.when(is_overhead, True)) / in_and_out
    return over.of(handled).agg(F.coalesce(share, F.lit(0.0)).alias("overhead_share"))


@stage(
    "decisions",
    columns="moves bigint, moved_last_s double, paused_s_mean double, paused_s_max double,"
    " homes bigint",
)
def relocations(decisions: DataFrame, over: Span) -> DataFrame:
    """Moves that were carried out, and where they led to in the end."""
    paused_s = F.get_json_object("reason", "$.paused_s").cast("double")
    of_each = (
        over.of(decisions)
        .where((F.col("policy") == "migration") & (F.col("action") == "moved"))
        .groupBy("subject")
        .agg(
            F.count("*").alias("moves"),
            F.max("time_s").alias("last_s"),
            F.sum(paused_s).alias("paused_s"),
            F.max(paused_s).alias("paused_s_max"),
            F.max_by("target", "time_s").alias("target"),
        )
    )
    digest = F.pmod(F.xxhash64("subject", "target"), F.lit(DIGEST_BELOW))
    moves = F.coalesce(F.sum("moves"), F.lit(0))
    return of_each.agg(
        moves.alias("moves"),
        F.coalesce(F.max("last_s"), F.lit(0.0)).alias("moved_last_s"),
        F.coalesce(F.sum("paused_s") / moves, F.lit(0.0)).alias("paused_s_mean"),
        F.coalesce(F.max("paused_s_max"), F.lit(0.0)).alias("paused_s_max"),
        F.coalesce(F.sum(digest), F.lit(0)).alias("homes"),
    )
